#include <weir/runtime/executor.h>
#include <weir/runtime/logger.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>

#include <array>
#include <atomic>
#include <csignal>
#include <exception>
#include <thread>
#include <utility>

namespace weir {

namespace {

namespace asio = boost::asio;

constexpr std::array<int, 2> kSignals{SIGINT, SIGTERM};

std::atomic<bool> g_watched{false};

// Asio puts SIG_DFL in place when it forgets a signal, so what was there before is kept here.
class SavedDispositions {
 public:
  SavedDispositions() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], nullptr, &saved_[i]);
    }
  }
  ~SavedDispositions() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], &saved_[i], nullptr);
    }
  }
  SavedDispositions(const SavedDispositions&) = delete;
  SavedDispositions& operator=(const SavedDispositions&) = delete;

 private:
  std::array<struct sigaction, kSignals.size()> saved_{};
};

class AsioSignalWatch final : public SignalWatch {
 public:
  explicit AsioSignalWatch(std::function<void(int)> handler)
      : handler_(std::move(handler)), io_(1) {
    for (const int signal : kSignals) {
      boost::system::error_code failed;
      signals_.add(signal, failed);
      if (failed) {
        WEIR_ERROR("signal is not watched signal={} cause=\"{}\"", signal, failed.message());
      }
    }
    wait();
    thread_ = std::thread([this] { io_.run(); });
  }

  ~AsioSignalWatch() override {
    asio::post(io_, [this] {
      stopping_ = true;
      boost::system::error_code ignored;
      signals_.cancel(ignored);
    });
    thread_.join();
  }

 private:
  void wait() {
    signals_.async_wait([this](const boost::system::error_code& failed, int signal) {
      if (failed) {
        return;  // cancelled
      }
      call_handler(signal);
      if (!stopping_) {
        wait();
      }
    });
  }

  void call_handler(int signal) {
    try {
      handler_(signal);
    } catch (const std::exception& thrown) {
      WEIR_ERROR("signal handler threw signal={} what=\"{}\"", signal, thrown.what());
    } catch (...) {
      WEIR_ERROR("signal handler threw signal={} what=\"not a std::exception\"", signal);
    }
  }

  // Before signals_, so that it is destroyed after it and has the last word.
  SavedDispositions saved_;
  std::function<void(int)> handler_;
  asio::io_context io_;
  asio::signal_set signals_{io_};
  bool stopping_ = false;  // confined to thread_
  std::thread thread_;
};

// Frees the place for the next watch after the dispositions are back.
class OnlySignalWatch final : public SignalWatch {
 public:
  explicit OnlySignalWatch(std::function<void(int)> handler) {
    const bool was_watched = g_watched.exchange(true);
    WEIR_ASSERT(!was_watched);
    watch_ = std::make_unique<AsioSignalWatch>(std::move(handler));
  }
  ~OnlySignalWatch() override {
    watch_.reset();
    g_watched.store(false);
  }

 private:
  std::unique_ptr<AsioSignalWatch> watch_;
};

}  // namespace

std::unique_ptr<SignalWatch> watch_termination_signals(std::function<void(int)> handler) {
  WEIR_ASSERT(handler != nullptr);
  return std::make_unique<OnlySignalWatch>(std::move(handler));
}

}  // namespace weir
