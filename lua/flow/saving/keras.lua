-- keras.lua: .keras files (metadata.json, config.json, model.weights.h5 and the assets of layers in a zip) and .weights.h5 files.
--
-- A .keras file is written beside its path and renamed at the end, so that a reader sees the old file or the new one; if writing fails the
-- old one stays. Reading makes the model of config.json with blank variables first, then fills them from the weights. Names of members come
-- from the file: core/io refuses those with empty parts, as absolute ones have, and read_own_files those that would leave its folder.

local os = require("flow.host").os
local native = require "flow.ffi"
local errors = require "flow.errors"
local json = require "flow.json"
local tensor_file = require "flow.saving.tensor_file"
local description = require "flow.saving.description"
local weights = require "flow.saving.weights"
local hooks = require "flow.layers.classes.saving_hooks"
local signature = require "flow.signature"
local io = require "flow.io"

local C, check, raise = native.C, native.check, errors.raise
local in_temporary_folder = signature.internal(io).in_temporary_folder
local keras = {}

local WEIGHTS = "model.weights.h5"
local KERAS_VERSION = "3.13.2"      -- whose format this is

local archive_out, text_out, bytes_out = native.out("flow_archive"), native.array("const char *", 1), native.array("double", 1)
local writer_out = native.out("flow_archive_writer")

---- writing ----------------------------------------------------------------------------------------------------------------------

-- Adds a member with this content.
local function add_text(archive, name, text)
  check(C.flow_archive_writer_add_text(archive, name, text, #text))
end

-- Adds all files of a folder, and of those in it, below `name`.
local function add_folder(archive, name, folder)
  for _, entry in ipairs(io.listdir(folder)) do
    local path = io.join(folder, entry)
    if io.isdir(path) then add_folder(archive, name .. "/" .. entry, path)
    else add_text(archive, name .. "/" .. entry, io.read_file(path)) end
  end
end

-- The folder in the archive for the files of a layer at a place of weights.with_assets; "" is the model.
local function assets_at(place) return place == "" and "assets" or "assets/" .. place end

-- The files that a script's layer writes itself.
local function add_own_files(archive, place, layer)
  if not hooks.of(layer, "save_assets") then return end
  in_temporary_folder(function(folder)
    layer:save_assets(folder)
    add_folder(archive, assets_at(place), folder)
  end)
end

-- Writes what `text`, config.json, describes beside `path` and renames. model: the layers, with the variables.
local function write(model, path, text, class_names, include_optimizer)
  local metadata = json.encode { keras_version = KERAS_VERSION, date_saved = os.date("!%Y-%m-%d@%H:%M:%S"), class_names = class_names }
  local writer = tensor_file.writer()
  weights.add(writer, model, include_optimizer)
  check(C.flow_archive_writer_new(path, writer_out))
  local archive = native.own(writer_out, C.flow_archive_writer_release)
  add_text(archive, "metadata.json", metadata)
  add_text(archive, "config.json", text)
  check(C.flow_archive_writer_add_tensors(archive, WEIGHTS, writer._handle, "hdf5"))
  for folder, layer in pairs(weights.of_host_layers(model)) do
    for name, content in pairs(layer:_assets()) do add_text(archive, ("assets/%s/%s"):format(folder, name), content) end
  end
  for place, layer in pairs(weights.with_assets(model)) do add_own_files(archive, place, layer) end
  check(C.flow_archive_writer_commit(archive))
  native.close(archive, C.flow_archive_writer_release)
  writer:close()
end

function keras.save(model, path, include_optimizer)
  write(model, path, json.encode(description.of(model)), model.class_names, include_optimizer)
end

-- The same of a flow.utils.FeatureSpace.
function keras.save_space(space, path)
  local entry, parts = require("flow.saving.feature_space").describe(space)
  write(parts, path, json.encode(entry))
end

-- Writes a .weights.h5 file: the variables of the model and of its optimizer.
function keras.save_weights(model, path)
  local writer = tensor_file.writer()
  weights.add(writer, model, true, true)
  writer:save(path, "hdf5")
  writer:close()
end

---- reading -----------------------------------------------------------------------------------------------------------------------

-- The JSON of a member; raises if the archive does not have it.
local function member(archive, path, name)
  if C.flow_archive_text(archive, name, text_out, bytes_out) ~= 0 then
    raise("%s is not a .keras file: %s", path, native.string(C.flow_last_error()))
  end
  local text = native.string(text_out[0], bytes_out[0])
  return json.decode(text, path .. ": " .. name), text
end

-- The contents of config.json and metadata.json, and the text of the first.
local function read_description(path)
  check(C.flow_archive_open(path, archive_out))
  local archive = native.own(archive_out, C.flow_archive_release)
  local entry, text = member(archive, path, "config.json")
  local metadata = member(archive, path, "metadata.json")
  native.close(archive, C.flow_archive_release)
  return entry, metadata, text
end

-- Hands a script's layer the files that it wrote.
local function read_own_files(archive, place, layer)
  if not hooks.of(layer, "load_assets") then return end
  local prefix = assets_at(place) .. "/"
  in_temporary_folder(function(folder)
    for i = 0, C.flow_archive_count(archive) - 1 do
      local name = native.string(C.flow_archive_name(archive, i))
      local rest = name:sub(1, #prefix) == prefix and name:sub(#prefix + 1) or ""
      local is_safe = rest ~= "" and rest:sub(-1) ~= "/" and rest:sub(1, 1) ~= "/" and not ("/" .. rest .. "/"):find("/../", 1, true)
      if is_safe and C.flow_archive_text(archive, name, text_out, bytes_out) == 0 then
        local target = io.join(folder, rest)
        io.makedirs(io.dirname(target))
        io.write(target, native.string(text_out[0], bytes_out[0]))
      end
    end
    layer:load_assets(folder)
  end)
end

-- What layers keep in their own files.
local function read_assets(model, path)
  local list, own = weights.of_host_layers(model), weights.with_assets(model)
  if next(list) == nil and next(own) == nil then return end
  check(C.flow_archive_open(path, archive_out))
  local archive = native.own(archive_out, C.flow_archive_release)
  for folder, layer in pairs(list) do
    layer:_read_assets(function(name)
      if C.flow_archive_text(archive, ("assets/%s/%s"):format(folder, name), text_out, bytes_out) ~= 0 then return nil end
      return native.string(text_out[0], bytes_out[0])
    end)
  end
  for place, layer in pairs(own) do read_own_files(archive, place, layer) end
  native.close(archive, C.flow_archive_release)
end

-- Class names are ours: Keras does not keep them.
local function check_names(names)
  if type(names) ~= "table" then return nil end
  for _, name in ipairs(names) do
    if type(name) ~= "string" then return nil end
  end
  return #names > 0 and names or nil
end

-- The file of tensors at a path, or the member `name` of the archive there.
local function open_weights(path, name, trusted)
  return tensor_file.open(path, name, { trusted = trusted })
end

-- What make(...) makes of a description, its variables zero: they are read next.
local function blank(make, ...)
  C.flow_context_set_blank(native.context, 1)
  local ok, made, parts = pcall(make, ...)
  C.flow_context_set_blank(native.context, 0)
  if not ok then error(made, 0) end
  return made, parts
end

-- Reads the variables and the assets of a model, or of what stands for one.
local function fill(model, path, options)
  local file = open_weights(path, WEIGHTS, options.trusted)
  weights.read(file, model, true)
  file:close()
  read_assets(model, path)
end

-- The model of a .h5 file of Keras 2's layout.
function keras.load_legacy(path, options)
  return require("flow.saving.legacy_models").load(path, options, blank)
end

-- The model of a file, or its FeatureSpace, and whether it is one. options: { custom_objects =, compile = true, trusted = false }.
function keras.load(path, options)
  local entry, metadata, text = read_description(path)
  if type(entry) == "table" and entry.class_name == "FeatureSpace" then
    local space, parts = blank(require("flow.saving.feature_space").make, entry, text, path, options)
    fill(parts, path, options)
    return space, true
  end
  local model = blank(description.model, entry, path, options)
  rawset(model, "_class_names", check_names(type(metadata) == "table" and metadata.class_names))
  fill(model, path, options)
  return model
end

-- From a .keras or a .weights.h5 file into a model that is there: all of it, or nothing.
function keras.load_weights(model, path, options)
  local file = open_weights(path, path:find("%.keras$") and WEIGHTS or nil, options.trusted)
  weights.read(file, model, false, options.skip_mismatch)
  file:close()
end

return keras
