-- legacy.lua: weights in the layout of Keras 2, as load_weights reads them from .h5 files: those of keras.applications, of
-- save_weights("m.h5") and of whole models (keras.src.legacy.saving.legacy_h5_format).
--
--   the note layer_names of the root, or of the group model_weights     the layers in the model's order, a line each
--   the note weight_names of each layer's group                         its variables, trainable ones first, as paths in that group
--
-- A list that is too long for one attribute is stored as layer_names0, layer_names1, ...

local errors = require "flow.errors"
local object = require "flow.object"
local log = require "flow.log"
local tensor = require "flow.tensor"
local tensor_file = require "flow.saving.tensor_file"
local weights = require "flow.saving.weights"

local raise, shape_text = errors.raise, tensor.shape_text
local legacy = {}

-- The lines of a note, of which long ones are in several: see the head of the file. None if the note is not there.
function legacy.lines_of(file, path, key)
  local parts, part = {}, file:note(path, key)
  if not part then
    repeat
      part = file:note(path, key .. #parts)
      parts[#parts + 1] = part
    until not part
    part = table.concat(parts, "\n")
  end
  local lines = {}
  for line in part:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

-- { name =, positions = {...} } of each layer that has variables, in the file's order.
local function stored_layers(file)
  local root = file:note("", "layer_names") or file:note("", "layer_names0")
  local prefix = root and "" or "model_weights"
  local list = {}
  for _, name in ipairs(legacy.lines_of(file, prefix, "layer_names")) do
    local path, positions = prefix == "" and name or prefix .. "/" .. name, {}
    for i, weight in ipairs(legacy.lines_of(file, path, "weight_names")) do
      positions[i] = file:find(path .. "/" .. weight) or raise("%s: the layer %q names the weight %q, which the file does not have",
        file.path, name, weight)
    end
    if #positions > 0 then list[#list + 1] = { name = name, positions = positions } end
  end
  if #list == 0 then
    raise("%s: it has no list of layers: load_weights reads .h5 files of Keras 2's layout, and .weights.h5, .keras and .safetensors files",
      file.path)
  end
  return list
end

-- The layer's variables as Keras 2 orders them.
local function variables_of(layer)
  local list = {}
  for _, variable in ipairs(layer.trainable_weights) do list[#list + 1] = variable end
  for _, variable in ipairs(layer.non_trainable_weights) do list[#list + 1] = variable end
  return list
end

-- Appends { position, variable } for each variable of the layer; or returns why it does not fit.
local function match(file, stored, layer, variables, list)
  if #variables ~= #stored.positions then
    return ("%s has %d variables, %q of the file %d"):format(object.title(layer), #variables, stored.name, #stored.positions)
  end
  for i, variable in ipairs(variables) do
    local shape = file:shape(stored.positions[i])
    if shape_text(shape) ~= shape_text(variable.shape) then
      return ("%s: variable \"%s\" has shape %s, the file has %s"):format(object.title(layer), variable.path, shape_text(variable.shape),
        shape_text(shape))
    end
  end
  for i, variable in ipairs(variables) do list[#list + 1] = { position = stored.positions[i], variable = variable } end
end

-- The stored layer of each layer of the model that has variables: of its place in the order, or of its name.
local function pairs_of(file, model, by_name)
  local stored, found, names = stored_layers(file), {}, {}
  for _, entry in ipairs(stored) do names[entry.name] = entry end
  for _, layer in ipairs(model.layers) do
    local variables = variables_of(layer)
    local entry = by_name and names[layer.name] or not by_name and stored[#found + 1]
    if #variables > 0 and (entry or not by_name) then found[#found + 1] = { layer = layer, variables = variables, stored = entry } end
  end
  if not by_name and #found ~= #stored then
    raise("%s: the file has the weights of %d layers, the model has %d layers with weights%s", file.path, #stored, #found,
      "; by_name = true reads those of equal names")
  end
  return found
end

-- options: skip_mismatch, by_name, trusted. When it fails the model is unchanged.
function legacy.load_weights(model, path, options)
  local file, list = tensor_file.open(path, nil, { trusted = options.trusted }), {}
  for _, pair in ipairs(pairs_of(file, model, options.by_name)) do
    local problem = match(file, pair.stored, pair.layer, pair.variables, list)
    if problem and not options.skip_mismatch then raise("%s: %s", path, problem) end
    if problem then log.warning("%s: %s; it stays unchanged", path, problem) end
  end
  weights.assign(file, list)
  file:close()
end

return legacy
