#include <weir/operators/internal/flow.h>
#include <weir/operators/internal/sink_buffer.h>
#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <typeinfo>
#include <utility>

namespace weir::internal {

namespace {

const char* reason_text(DropReason reason) {
  switch (reason) {
    case DropReason::kNullKey:
      return "null_key";
    case DropReason::kNullValue:
      return "null_value";
    case DropReason::kInvalidTimestamp:
      return "invalid_timestamp";
    case DropReason::kError:
    case DropReason::kCount:
      break;
  }
  return "error";
}

struct Thrown {
  std::string type;
  std::string message;
};

// Of the exception that is being handled.
Thrown describe_exception() {
  try {
    throw;
  } catch (const std::exception& exception) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> name(
        abi::__cxa_demangle(typeid(exception).name(), nullptr, nullptr, &status), std::free);
    return {status == 0 ? name.get() : typeid(exception).name(), exception.what()};
  } catch (...) {
    return {"(unknown)", "something that is no std::exception"};
  }
}

const char* stage_text(ErrorStage stage) {
  switch (stage) {
    case ErrorStage::kDeserialization:
      return "deserialization";
    case ErrorStage::kProcessing:
      return "processing";
    case ErrorStage::kProduction:
      break;
  }
  return "production";
}

}  // namespace

void TaskContext::fail(Error error, FailureKind kind) {
  if (!failed_) {
    failed_ = true;
    stops_run_ = true;
    kind_ = kind;
    status_ = std::move(error);
  }
}

void TaskContext::drop(DropReason reason, const Flow& flow) {
  dropped_.add(1);
  bool& warned = warned_[static_cast<std::size_t>(reason)];
  if (!warned) {
    warned = true;
    WEIR_WARN(
        "record dropped reason={} topic={} partition={} offset={} (the first of its kind; "
        "later ones are only counted)",
        reason_text(reason), flow.record.topic, flow.record.partition.value(),
        flow.record.offset.value());
  }
}

ErrorResponse TaskContext::response(ErrorStage stage) const {
  switch (stage) {
    case ErrorStage::kDeserialization:
      return policies_.deserialization;
    case ErrorStage::kProcessing:
      return policies_.processing;
    case ErrorStage::kProduction:
      break;
  }
  return policies_.production;
}

void TaskContext::reject(ErrorStage stage, Error error, const Flow& flow) {
  write_dead_letter(stage, error, flow, errc_name(error.code()));
  follow_policy(stage, std::move(error), flow);
}

void TaskContext::function_threw(ErrorStage stage, std::string_view name, const Flow& flow) {
  if (failed_) {
    throw;  // it was reported where it arose
  }
  const Thrown thrown = describe_exception();
  Error error(Errc::kHandlerThrew, thrown.message);
  write_dead_letter(stage, error, flow, thrown.type);
  follow_policy(
      stage,
      std::move(error).with_context(fmt::format(
          "operator '{}' threw (correct the function or the record and start again)", name)),
      flow);
  if (failed_) {
    throw;
  }
}

void TaskContext::follow_policy(ErrorStage stage, Error error, const Flow& flow) {
  if (failed_ && kind_ == FailureKind::kRecord) {
    status_ = std::move(error).with_context(
        fmt::format("{} (of this record)", status_.error().message()));
    return;
  }
  if (response(stage) == ErrorResponse::kFail) {
    fail(std::move(error));
    return;
  }
  if (!warned_[static_cast<std::size_t>(DropReason::kError)]) {
    WEIR_WARN("record cannot go on stage={} error=\"{}\"", stage_text(stage), error.to_string());
  }
  drop(DropReason::kError, flow);
}

void TaskContext::write_dead_letter(ErrorStage stage, const Error& error, const Flow& flow,
                                    std::string_view exception) {
  if (dead_letters_ == nullptr) {
    return;
  }
  const bool has_record = flow.source != nullptr;
  Headers headers(has_record ? flow.source->headers : HeadersView());
  headers.add("__streams.errors.exception", exception);
  headers.add("__streams.errors.message", ByteView(error.message()));
  headers.add("__streams.errors.stacktrace",
              ByteView(fmt::format("{}: {}", exception, error.message())));
  headers.add("__streams.errors.topic",
              flow.record.topic.empty() ? NullableBytes() : NullableBytes(flow.record.topic));
  headers.add("__streams.errors.partition",
              ByteView(std::to_string(flow.record.partition.value())));
  headers.add("__streams.errors.offset", ByteView(std::to_string(flow.record.offset.value())));

  std::string& out = dead_letters_->bytes();
  SinkMark mark{.begin = out.size()};
  if (has_record) {
    out.append(flow.source->key.view_or_empty());
    mark.key_end = out.size();
    out.append(flow.source->value.view_or_empty());
    mark.key_is_null = flow.source->key.is_null();
    mark.value_is_null = flow.source->value.is_null();
  } else {
    mark.key_end = out.size();
    mark.key_is_null = true;
    mark.value_is_null = true;
  }
  dead_letters_->add(mark, has_record ? flow.source->timestamp : flow.record.timestamp,
                     headers.view(), flow);
  if (response(stage) == ErrorResponse::kFail) {
    dead_letters_->flush();  // nothing else will: the task stops here
  }
}

}  // namespace weir::internal
