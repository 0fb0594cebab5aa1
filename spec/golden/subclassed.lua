-- subclassed.lua: inputs, and what models with the weights of spec/golden/keras/subclassed*.weights.h5 predict. Made by
-- subclassed.py.
return {
  x = { { 0, 0.2, 0.4 }, { 0.6, 0.8, 1 } },
  net = { { 18.1994, 23.46895 }, { 20.115, 25.96791 } },
  graph = { { 2.49382, 2.518291 }, { 4.504517, 4.788796 } },
}
