# Stubs in C for CMake, made by `quill support cmake`.
#
#     find_package(Quill REQUIRED)
#     quill_stubs(counter_stubs FILES counter.idl clock.idl [KERNEL linux] [INCLUDE idl] [DEFINE NAME=1])
#     target_link_libraries(program PRIVATE counter_stubs)
#
# `counter_stubs` is a library without an object of its own: who links to it finds <counter.h> and <clock.h>, which are made before it is
# compiled, and made again when one of the files changes that were read for them. Where quill is says QUILL_EXECUTABLE.

cmake_policy(PUSH)
cmake_policy(VERSION 3.20...3.25)

find_program(QUILL_EXECUTABLE quill HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin")
if(NOT QUILL_EXECUTABLE)
  set(Quill_FOUND FALSE)
  set(Quill_NOT_FOUND_MESSAGE "the program quill is not in the search path; QUILL_EXECUTABLE says where it is")
endif()

function(quill_stubs target)
  cmake_parse_arguments(PARSE_ARGV 1 QUILL "" "KERNEL" "FILES;INCLUDE;DEFINE")
  if(NOT QUILL_FILES OR QUILL_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "quill_stubs(TARGET FILES a.idl ... [KERNEL name] [INCLUDE directories] [DEFINE macros])")
  endif()
  set(options)
  if(QUILL_KERNEL)
    list(APPEND options --kernel "${QUILL_KERNEL}")
  endif()
  foreach(directory IN LISTS QUILL_INCLUDE)
    get_filename_component(directory "${directory}" ABSOLUTE)
    list(APPEND options -I "${directory}")
  endforeach()
  foreach(macro IN LISTS QUILL_DEFINE)
    list(APPEND options -D "${macro}")
  endforeach()
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${target}")
  file(MAKE_DIRECTORY "${output}")
  set(headers)
  foreach(file IN LISTS QUILL_FILES)
    get_filename_component(source "${file}" ABSOLUTE)
    get_filename_component(name "${file}" NAME_WLE)
    add_custom_command(
      OUTPUT "${output}/${name}.h"
      COMMAND "${QUILL_EXECUTABLE}" --emit c ${options} -o "${output}" --depfile "${output}/${name}.d" "${source}"
      MAIN_DEPENDENCY "${source}"
      DEPENDS "${QUILL_EXECUTABLE}"
      DEPFILE "${output}/${name}.d"
      COMMENT "Making stubs of ${file}"
      VERBATIM)
    list(APPEND headers "${output}/${name}.h")
  endforeach()
  add_custom_target(${target}_headers DEPENDS ${headers})
  add_library(${target} INTERFACE)
  add_dependencies(${target} ${target}_headers)
  target_include_directories(${target} INTERFACE "${output}")
endfunction()

cmake_policy(POP)
