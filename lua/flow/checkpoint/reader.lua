-- reader.lua: what is in a checkpoint, without the objects that wrote it: flow.train.list_variables, load_variable and load_checkpoint, as
-- tf.train has them. A path is that of a checkpoint, or of a folder, of which the latest one is meant. Names are those of object_graph.lua:
-- model/layers/0/kernel.

local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local files = require "flow.io"
local checkpoint = require "flow.checkpoint.checkpoint"
local directory = require "flow.checkpoint.directory"
local printed = require "flow.classes.printed"

local raise, takes = errors.raise, signature.takes
local reader = {}

local Reader = object.class("CheckpointReader")

-- The path of a checkpoint for that of a folder or of itself.
local function path_of(what, path)
  path = files.path(path, what)
  if not files.isdir(path) then return path end
  return directory.latest_checkpoint(path) or raise("%s: the folder %s has no checkpoint", what, path)
end

-- Opens a checkpoint, calls f(file), and closes it.
local function within(path, f)
  local file = checkpoint.open(path)
  local ok, result = pcall(f, file)
  file:close()
  if not ok then error(result, 0) end
  return result
end

-- A table of all tensors of a checkpoint: name -> value(file, name).
local function map(path, value)
  return within(path, function(file)
    local result = {}
    for i = 1, file.count do
      local name = file:name_of(i)
      result[name] = value(file, name)
    end
    return result
  end)
end

-- An object that says what is in a checkpoint, and reads tensors of it one by one.
function reader.load_checkpoint(path)
  path = path_of("flow.train.load_checkpoint", path)
  local self = object.new(Reader, { path = path })
  rawset(self, "_shapes", map(path, function(file, name) return file:shape(name) end))
  return self
end

takes "tensor_name: string"
function Reader:has_tensor(name) return self._shapes[name] ~= nil end
-- The shapes and the dtypes of all, by their names.
function Reader:get_variable_to_shape_map()
  local result = {}
  for name, shape in pairs(self._shapes) do result[name] = printed { unpack(shape) } end
  return printed(result)
end
function Reader:get_variable_to_dtype_map() return printed(map(self.path, function(file, name) return file:dtype(name) end)) end

-- A tensor by its name.
takes "tensor_name: string"
function Reader:get_tensor(name)
  if not self._shapes[name] then raise("%s has no tensor %q%s", self.path, name, errors.suggestion(name, self._shapes)) end
  return within(self.path, function(file) return file:read(name) end)
end

-- A list of { name, shape } of all tensors, sorted by their names.
function reader.list_variables(path)
  local shapes, list = reader.load_checkpoint(path)._shapes, {}
  for i, name in ipairs(require("flow.names").sorted(shapes)) do list[i] = printed { name, printed(shapes[name]) } end
  return printed(list)
end

-- A tensor of a checkpoint by its name.
function reader.load_variable(path, name) return reader.load_checkpoint(path):get_tensor(name) end

return reader
