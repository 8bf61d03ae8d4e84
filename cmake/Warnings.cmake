# Warnings of our own targets; an error only in presets (WEIR_WERROR), not for people who build us.
# clang: libstdc++ 12's std::stable_sort calls what it has deprecated.
add_library(weir_warnings INTERFACE)
target_compile_options(weir_warnings INTERFACE $<BUILD_INTERFACE:
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Wcast-align -Woverloaded-virtual -Wformat=2 -Wno-missing-field-initializers -Wimplicit-fallthrough -Wextra-semi -Wsuggest-override
  $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond -Wduplicated-branches -Wlogical-op>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety -Werror=thread-safety -Wno-deprecated-declarations>
  $<$<BOOL:${WEIR_WERROR}>:-Werror>>)
