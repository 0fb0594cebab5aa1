-- What h5py finds in hdf5/int16.h5; made by spec/golden/hdf5.py.
return {
  tensors = {
    ["0"] = { dtype = "int32", shape = { 20, 20 }, first = { 0, 1, 2 }, sum = 79800 } },
  notes = {
     },
  groups = {
     } }
