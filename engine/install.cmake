# What `cmake --install` lays out: the command, and the engine as a library for find_package(tessera).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)

# The public headers are the face and what it includes, in their folders. An edit of one of them
# may change which they are.
function(collect_headers header)
  if(header IN_LIST headers)
    return()
  endif()
  list(APPEND headers ${header})
  file(STRINGS ${PROJECT_SOURCE_DIR}/${header} includes REGEX "^#include \"")
  foreach(line IN LISTS includes)
    string(REGEX REPLACE "^#include \"(.*)\".*" "\\1" included "${line}")
    collect_headers(${included})
  endforeach()
  set(headers ${headers} PARENT_SCOPE)
endfunction()
set(headers "")
collect_headers(engine/engine.h)
foreach(header IN LISTS headers)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${header}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tessera/${folder})
endforeach()

# Static libraries are linked by whoever links the engine, so all of them are exported.
set(libraries tensor read_ahead operations kernels_cpu kernels_cuda kernels model_loaders engine)
foreach(library IN LISTS libraries)
  set_target_properties(tessera_${library} PROPERTIES EXPORT_NAME ${library})
endforeach()
list(TRANSFORM libraries PREPEND tessera_)
install(TARGETS ${libraries} EXPORT tessera ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT tessera NAMESPACE tessera:: FILE tessera-targets.cmake DESTINATION ${package_dir})
install(TARGETS tessera RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tessera-config.cmake.in
  ${PROJECT_BINARY_DIR}/tessera-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tessera-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tessera-config.cmake
  ${PROJECT_BINARY_DIR}/tessera-config-version.cmake DESTINATION ${package_dir})
