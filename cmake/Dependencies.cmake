# Every third-party package in one place. RocksDB is found last: its config puts modules for TBB, zstd
# and lz4 on CMAKE_MODULE_PATH that change what later calls find.
find_package(Threads REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(TBB REQUIRED)
find_package(Protobuf REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Snappy REQUIRED)
find_package(zstd REQUIRED)
find_package(PkgConfig REQUIRED)
# Not called lz4: its variables would be taken for those of RocksDB's module.
pkg_check_modules(weir_lz4 REQUIRED IMPORTED_TARGET liblz4)
set(weir_saved_module_path "${CMAKE_MODULE_PATH}")
find_package(RocksDB REQUIRED)
set(CMAKE_MODULE_PATH "${weir_saved_module_path}")
