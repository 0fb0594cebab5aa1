# compile.cmake: kernels.cu for one family to FOLDER/FAMILY.fatbin, .c (the same as the array flow_cuda_FAMILY_fatbin), .ptxas (what the
# assembler says of each kernel) and .d (what it depends on). Run by cmake -P with SOURCE (its root), NVCC, FOLDER, FAMILY, HEADER (its path
# from kernels/), LIST (the macro that lists the kernels), FLAGS (the targets), and CACHE: a folder where results are kept by what they were
# made of, since the compilation takes minutes; empty: none.
set(to ${FOLDER}/${FAMILY})
set(from ${SOURCE}/kernels/cuda/kernels.cu)
set(command ${NVCC} -O3 -std=c++17 -Xptxas -v --Werror all-warnings -DFAMILY_HEADER="${HEADER}" -DFAMILY_KERNELS=${LIST} ${FLAGS})
set(include -I${SOURCE}/bindings -I${SOURCE}/core -I${SOURCE}/kernels)
get_filename_component(bin ${NVCC} DIRECTORY)

execute_process(COMMAND ${NVCC} -M -MF ${to}.d -MT ${to}.c -std=c++17 -DFAMILY_HEADER="${HEADER}" -DFAMILY_KERNELS=${LIST} ${include}
  ${from} COMMAND_ERROR_IS_FATAL ANY)
if(CACHE)
  execute_process(COMMAND ${NVCC} --version OUTPUT_VARIABLE what)
  string(APPEND what "${command}")
  file(READ ${to}.d files)
  string(REGEX MATCHALL "${SOURCE}/[^ \n]+\\.(cu|h|inc)|${SOURCE}/kernels/[^ \n]+\\.c" files "${files}")
  list(REMOVE_DUPLICATES files)
  foreach(file ${files})
    file(SHA256 ${file} content)
    string(APPEND what "${content}")
  endforeach()
  file(READ ${to}.d files)
  if(files MATCHES "\\.def")      # of a list of ops what this family takes of it
    execute_process(COMMAND ${NVCC} -E -Xcompiler -P -std=c++17 -DFAMILY_HEADER="${HEADER}" -DFAMILY_KERNELS=${LIST} ${include} ${from}
      OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX REPLACE "[ \t\n]+" " " text "${text}")
    string(SHA256 content "${text}")
    string(APPEND what "${content}")
  endif()
  string(SHA256 key "${what}")
  set(kept ${CACHE}/${FAMILY}-${key})
endif()

if(CACHE AND EXISTS ${kept}.fatbin AND EXISTS ${kept}.ptxas)
  file(COPY_FILE ${kept}.fatbin ${to}.fatbin)
  file(COPY_FILE ${kept}.ptxas ${to}.ptxas)
else()
  execute_process(COMMAND ${command} -fatbin ${include} -o ${to}.fatbin ${from} RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(failed)
    message(FATAL_ERROR "${text}")
  endif()
  file(WRITE ${to}.ptxas "${text}")
  if(CACHE)      # renamed in one go: others may look meanwhile
    file(MAKE_DIRECTORY ${CACHE})
    string(RANDOM LENGTH 12 unique)
    foreach(kind ptxas fatbin)
      file(COPY_FILE ${to}.${kind} ${kept}.${unique})
      file(RENAME ${kept}.${unique} ${kept}.${kind})
    endforeach()
  endif()
endif()
execute_process(COMMAND ${bin}/bin2c --const --type longlong --name flow_cuda_${FAMILY}_fatbin ${to}.fatbin OUTPUT_FILE ${to}.c
  COMMAND_ERROR_IS_FATAL ANY)
