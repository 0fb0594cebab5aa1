-- datasets.lua: flow.datasets.mnist { path = "dir" } and fashion_mnist: images {n, 28, 28} and labels {n}, uint8, for training and test.
--
-- Nothing is downloaded: files are looked for in the places that load_data lists, in that order. A place is a folder with the four IDX
-- files (http://yann.lecun.com/exdb/mnist), a folder with NAME.npz, or an .npz file with the members of keras.datasets.

local host = require "flow.host"
local io = require("flow.host").io
local native = require "flow.ffi"
local errors = require "flow.errors"

local C, check, raise = native.C, native.check, errors.raise
local signature = require "flow.signature"

local datasets = signature.module "flow.datasets"
local out = native.out("flow_tensor")

-- Whether a path can be opened for reading.
local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

local FILES = { "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte" }
local MEMBERS = { "x_train", "y_train", "x_test", "y_test" }

-- The four IDX files in a folder (each gzipped or not, with "-" or "." before idx), or nil and the first one missing.
local function idx_files(folder)
  local paths = {}
  for i, name in ipairs(FILES) do
    for _, spelling in ipairs { name, name .. ".gz", (name:gsub("%-idx", ".idx")), (name:gsub("%-idx", ".idx")) .. ".gz" } do
      if not paths[i] and exists(folder .. "/" .. spelling) then paths[i] = folder .. "/" .. spelling end
    end
    if not paths[i] then return nil, folder .. "/" .. name .. "[.gz]" end
  end
  return paths
end

-- One IDX file, gzipped or not, and one member of an .npz file, as tensors.
local function load_idx(path)
  check(C.flow_tensor_load_idx(path, out))
  return native.tensor(out[0])
end

local function load_npz(path, member)
  check(C.flow_tensor_load_npz(path, member, out))
  return native.tensor(out[0])
end

-- The four tensors of one place as a list, or nil and what was looked for there. A file that is there but damaged is an error.
local function load_from(place, name)
  if place:find("%.npz$") then
    if not exists(place) then return nil, place end
    local parts = {}
    for i, member in ipairs(MEMBERS) do parts[i] = load_npz(place, member) end
    return parts
  end
  local paths, missing = idx_files(place)
  if paths then
    local parts = {}
    for i, path in ipairs(paths) do parts[i] = load_idx(path) end
    return parts
  end
  local file = ("%s/%s.npz"):format(place, name)
  if exists(file) then return load_from(file, name) end
  return nil, missing .. " or " .. file
end

-- Returns the four tensors; raises unless there is a label for each picture.
local function check_parts(name, parts, place)
  for i = 1, 3, 2 do
    local images, labels = parts[i], parts[i + 1]
    if images.rank ~= 3 or labels.rank ~= 1 or images.shape[1] ~= labels.shape[1] then
      raise("datasets.%s: %s holds images %s and labels %s, expected {n, height, width} and {n}", name, place,
        table.concat(images.shape, "x"), table.concat(labels.shape, "x"))
    end
  end
  return parts[1], parts[2], parts[3], parts[4]
end

-- A set of pictures that has the four files. folder: what Keras calls its folder in the cache, and FLOW_DATA may have. from: where Keras
-- gets its files, below https://storage.googleapis.com/tensorflow/tf-keras-datasets.
local function define(name, folder, from)
  local what = "datasets." .. name
  local set = signature.module("flow." .. what)
  datasets[name] = set

  -- x_train, y_train, x_test, y_test. path: a folder with the IDX files or NAME.npz, or an .npz file. Without a path FLOW_DATA and Keras'
  -- cache folder are searched.
  signature.takes "path?"
  function set.load_data(path)
    if path ~= nil and path ~= "" then path = require("flow.io").path(path, what) end
    local places = {}
    if path and path ~= "" then
      places[1] = (path:gsub("/+$", ""))
    else
      local data, home = host.getenv("FLOW_DATA"), host.getenv("KERAS_HOME") or (host.getenv("HOME") or "") .. "/.keras"
      if data and data ~= "" then
        if name == "mnist" then places[1] = data end
        places[#places + 1] = data .. "/" .. folder
      end
      if name ~= "mnist" then places[#places + 1] = home .. "/datasets/" .. folder end
      places[#places + 1] = name == "mnist" and home .. "/datasets" or nil
    end
    local looked = {}
    for _, place in ipairs(places) do
      local parts, missing = load_from(place, name)
      if parts then return check_parts(name, parts, place) end
      looked[#looked + 1] = "  " .. missing
    end
    raise("%s: no data found; give { path = \"folder\" } or set FLOW_DATA. Looked for\n%s\n" ..
      "Nothing is downloaded: get https://storage.googleapis.com/tensorflow/tf-keras-datasets/%s", what, table.concat(looked, "\n"), from)
  end

  getmetatable(set).__call = function(_, ...) return set.load_data(...) end
end

define("mnist", "mnist", "mnist.npz")
define("fashion_mnist", "fashion-mnist", "{train,t10k}-{images-idx3,labels-idx1}-ubyte.gz")

-- One IDX file as a tensor.
function datasets.load_idx(path)
  return load_idx(require("flow.io").path(path, "datasets.load_idx"))
end

return datasets
