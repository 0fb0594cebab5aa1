-- What h5py finds in hdf5/latest.h5; made by spec/golden/hdf5.py.
return {
  tensors = {
    ["layers/dense/vars/0"] = { dtype = "float32", shape = { 20, 20 }, first = { 0, 1, 2 }, sum = 79800 } },
  notes = {
    { "layers/dense/vars", "name", "dense" } },
  groups = {
    "layers",
    "layers/dense",
    "layers/dense/vars" } }
