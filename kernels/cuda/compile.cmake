# compile.cmake: kernels.cu to FOLDER/kernels.fatbin, kernels.c (the same as an array) and kernels.ptxas (what the assembler says of each
# kernel). Run by cmake -P in the root of the source: NVCC, FOLDER, FLAGS (a list: the targets).
execute_process(COMMAND ${NVCC} -fatbin -O3 -std=c++17 ${FLAGS} --threads 2 -Xptxas -v --Werror all-warnings -Ibindings -Icore -Ikernels
  -o ${FOLDER}/kernels.fatbin kernels/cuda/kernels.cu RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(failed)
  message(FATAL_ERROR "${text}")
endif()
file(WRITE ${FOLDER}/kernels.ptxas "${text}")
get_filename_component(bin ${NVCC} DIRECTORY)
execute_process(COMMAND ${bin}/bin2c --const --type longlong --name flow_cuda_fatbin ${FOLDER}/kernels.fatbin OUTPUT_FILE ${FOLDER}/kernels.c
  COMMAND_ERROR_IS_FATAL ANY)
