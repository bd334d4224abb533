# What goes into the system beside the programs, and the Debian package: cmake --build DIR --target deb.

set(PACKAGE_SOURCE ${CMAKE_SOURCE_DIR}/docs/package)
set(PACKAGED "")

# Links whose names tell the runtime its profile. Engines keep such a path for as long as a container lives, so it must not
# change with a version.
get_filename_component(BUILTIN ${CMAKE_BINARY_DIR}/runtimes ABSOLUTE)
file(MAKE_DIRECTORY ${BUILTIN})
set(RUNTIME_NAMES benchsand)
foreach(profile ${PROFILES})
  get_filename_component(name ${profile} NAME_WE)
  list(APPEND RUNTIME_NAMES benchsand-${name})
endforeach()
foreach(name ${RUNTIME_NAMES})
  file(CREATE_LINK ../../../bin/benchsand-runtime ${BUILTIN}/${name} SYMBOLIC)
  install(FILES ${BUILTIN}/${name} DESTINATION lib/benchsand/runtimes)
endforeach()

# The conformance suite daily and after changes; disabled until somebody enables them.
foreach(unit service timer path)
  install(FILES ${PACKAGE_SOURCE}/benchsand-conformance.${unit} DESTINATION lib/systemd/system)
endforeach()

# Pages of the manual and the changelog, compressed as a distribution wants them.
find_program(GZIP gzip REQUIRED)
function(compressed source name destination)
  set(target ${CMAKE_BINARY_DIR}/packaged/${name}.gz)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/packaged)
  add_custom_command(OUTPUT ${target} COMMAND ${GZIP} -9nc ${source} > ${target} DEPENDS ${source} VERBATIM)
  install(FILES ${target} DESTINATION ${destination})
  set(PACKAGED ${PACKAGED} ${target} PARENT_SCOPE)
endfunction()
foreach(page benchsand.1 benchsand-task.5 benchsand-runtime.8)
  string(REGEX REPLACE ".*\\." "" section ${page})
  compressed(${CMAKE_SOURCE_DIR}/docs/man/${page} ${page} share/man/man${section})
endforeach()
compressed(${PACKAGE_SOURCE}/changelog changelog share/doc/benchsand)
install(FILES ${PACKAGE_SOURCE}/copyright DESTINATION share/doc/benchsand)

# By the program from its own options, so that they cannot go stale.
foreach(pair bash=share/bash-completion/completions/benchsand zsh=share/zsh/vendor-completions/_benchsand
    fish=share/fish/vendor_completions.d/benchsand.fish)
  string(REGEX MATCH "^[a-z]+" shell ${pair})
  string(REGEX REPLACE "^[a-z]+=" "" path ${pair})
  get_filename_component(folder ${path} DIRECTORY)
  get_filename_component(file ${path} NAME)
  set(script ${CMAKE_BINARY_DIR}/packaged/${shell}/${file})
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/packaged/${shell})
  add_custom_command(OUTPUT ${script} COMMAND benchsand completion ${shell} > ${script} DEPENDS benchsand VERBATIM)
  install(FILES ${script} DESTINATION ${folder})
  list(APPEND PACKAGED ${script})
endforeach()
add_custom_target(packaged ALL DEPENDS ${PACKAGED})
add_dependencies(packaged benchsand benchsand-engines benchsand-runtime)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME benchsand)
set(CPACK_PACKAGE_VENDOR benchsand)
set(CPACK_PACKAGE_CONTACT "benchsand authors <benchsand@users.noreply.github.com>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "container runtime and runner for code that nobody trusts")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Runs untrusted programs (agents, model answers, contest entries) in a container
made by crun or runc, observes from the host that every wall stood, and gives a
verdict that is fail-closed: without evidence of isolation there is no score.
.
It runs tasks by itself, and is an OCI runtime for Docker, Podman and
containerd.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "crun | runc")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # of benchsand-engines
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PACKAGE_SOURCE}/postinst ${PACKAGE_SOURCE}/prerm ${PACKAGE_SOURCE}/postrm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
set(CPACK_OUTPUT_FILE_PREFIX ${CMAKE_BINARY_DIR})
file(STRINGS ${PACKAGE_SOURCE}/changelog CHANGELOG LIMIT_COUNT 1)
if(NOT CHANGELOG MATCHES "^benchsand \\(${PROJECT_VERSION}\\) ")
  message(FATAL_ERROR "docs/package/changelog does not begin with version ${PROJECT_VERSION}")
endif()
install(FILES ${PACKAGE_SOURCE}/lintian-overrides DESTINATION share/lintian/overrides RENAME benchsand)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
include(CPack)
add_custom_target(deb COMMAND ${CMAKE_CPACK_COMMAND} -G DEB DEPENDS packaged
  WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
