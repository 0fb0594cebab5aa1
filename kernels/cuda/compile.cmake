# compile.cmake: kernels.cu for one family to FOLDER/FAMILY.fatbin, .c (the same as the array flow_cuda_FAMILY_fatbin), .ptxas (what the
# assembler says of each kernel) and .d (what it depends on). Run by cmake -P with SOURCE (its root), NVCC, FOLDER, FAMILY, HEADER, LIST
# (the macro that lists the kernels), FLAGS (the targets).
set(to ${FOLDER}/${FAMILY})
execute_process(COMMAND ${NVCC} -fatbin -O3 -std=c++17 ${FLAGS} -Xptxas -v --Werror all-warnings -I${SOURCE}/bindings -I${SOURCE}/core -I${SOURCE}/kernels
  -DFAMILY_HEADER="cuda/${HEADER}" -DFAMILY_KERNELS=${LIST} -MD -MF ${to}.d -MT ${to}.c -o ${to}.fatbin
  ${SOURCE}/kernels/cuda/kernels.cu
  RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(failed)
  message(FATAL_ERROR "${text}")
endif()
file(WRITE ${to}.ptxas "${text}")
get_filename_component(bin ${NVCC} DIRECTORY)
execute_process(COMMAND ${bin}/bin2c --const --type longlong --name flow_cuda_${FAMILY}_fatbin ${to}.fatbin OUTPUT_FILE ${to}.c
  COMMAND_ERROR_IS_FATAL ANY)
