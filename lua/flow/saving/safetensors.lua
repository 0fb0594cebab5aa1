-- safetensors.lua: flow.save_safetensors and flow.load_safetensors: tensors by name in the format of
-- https://github.com/huggingface/safetensors.
--
--   flow.save_safetensors("x.safetensors", { weight = tensor, bias = variable })
--   flow.save_safetensors("x.safetensors", model, { metadata = { made_by = "me" } })     by the names of its variables
--   local tensors, metadata = flow.load_safetensors("x.safetensors")
--
-- model:load_weights("x.safetensors") uses safetensors.load_weights below.

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"
local object = require "flow.object"
local variable = require "flow.tensor.variable"
local files = require "flow.io"
local tensor_file = require "flow.saving.tensor_file"

local raise = errors.raise
local safetensors = signature.module "flow.safetensors"

-- The variables of a layer or model by name: { name = variable }, and the names in their order. Keras' names may come twice; the second
-- one gets _1 after it.
local function weights_by_name(model)
  local by_name, names = {}, {}
  for _, weight in ipairs(model.weights) do
    local owned, count = variable._owned_name(weight), 1
    local name = owned
    while by_name[name] do
      name, count = owned .. "_" .. count, count + 1
    end
    by_name[name] = weight
    names[#names + 1] = name
  end
  return by_name, names
end

-- Tensors and variables by name, and the names in the order in which they are written: those of a model, or of a table, sorted.
local function named_values(what, values)
  if object.has(values, "weights") then
    local by_name, names = weights_by_name(values)
    if #names == 0 then raise("%s: %s has no variables yet: call it once, or give it an Input", what, object.title(values)) end
    return by_name, names
  end
  if type(values) ~= "table" or getmetatable(values) then
    raise("%s takes a table of names with tensors, or a model; got %s", what, errors.describe(values))
  end
  local names = {}
  for name, value in pairs(values) do
    if type(name) ~= "string" then raise("%s: the name of a tensor is a string, got %s", what, errors.describe(name)) end
    if not native.is_tensor(value) and not variable.is_variable(value) then
      raise("%s: %q is %s, expected a tensor", what, name, errors.describe(value))
    end
    names[#names + 1] = name
  end
  table.sort(names)
  return values, names
end

-- metadata: texts by name.
signature.takes "path, values: data, { metadata?: table }"
function safetensors.save(path, values, options)
  local what = "flow.save_safetensors"
  path = files.path(path, what)
  local by_name, names = named_values(what, values)
  local writer = tensor_file.writer()
  for _, name in ipairs(names) do writer:add(name, by_name[name]) end
  local keys = {}
  for key, text in pairs(options.metadata or {}) do
    if type(key) ~= "string" or type(text) ~= "string" then raise("%s: metadata is a table of texts by name", what) end
    keys[#keys + 1] = key
  end
  table.sort(keys)
  for _, key in ipairs(keys) do writer:note("", key, options.metadata[key]) end
  writer:save(path, "safetensors")
  writer:close()
end

-- Tensors by name, and the metadata.
function safetensors.load(path)
  local file = tensor_file.open(files.path(path, "flow.load_safetensors"))
  local tensors, metadata = {}, {}
  for i = 1, file.count do tensors[file:name_of(i)] = file:read(i) end
  for _, note in ipairs(file:notes()) do
    metadata[note.path == "" and note.key or note.path .. "#" .. note.key] = file:note(note.path, note.key)
  end
  file:close()
  return tensors, metadata
end

local function shape_text(shape) return "{" .. table.concat(shape, ", ") .. "}" end

-- Into a built model, by the names of its variables; a dtype that differs is cast. All is read and checked before anything changes.
-- skip_mismatch: variables that are missing, or have another shape, stay unchanged. Returns the names that were set.
function safetensors.load_weights(model, path, skip_mismatch)
  local file = tensor_file.open(files.path(path, "load_weights"))
  local by_name, names = weights_by_name(model)
  local values, set = {}, {}
  for _, name in ipairs(names) do
    local found = file:find(name)
    local problem
    if not found then
      local known = {}
      for i = 1, file.count do known[i] = file:name_of(i) end
      problem = ("%s has no tensor %q%s"):format(path, name, errors.suggestion(name, known))
    elseif shape_text(file:shape(found)) ~= shape_text(by_name[name].shape) then
      local there, here = shape_text(file:shape(found)), shape_text(by_name[name].shape)
      problem = ("%q has shape %s in %s, in the model %s"):format(name, there, path, here)
    else
      values[name] = file:read(found)
      if values[name].dtype ~= by_name[name].dtype then values[name] = values[name]:to(by_name[name].dtype) end
      set[#set + 1] = name
    end
    if problem and not skip_mismatch then raise("load_weights: %s: %s", object.title(model), problem) end
  end
  file:close()
  for _, name in ipairs(set) do by_name[name]:assign(values[name]) end
  return set
end

return safetensors
