-- init.lua: flow.load_model, and what models can do with files: save, save_weights, load_weights, to_json, get_config.
-- The format follows from the ending of the path. Of several workers that train a model the chief writes (distribute/saving.lua).
--
-- The room: files of models and weights. May use: tensor, layers, distribute, model, train.

local errors = require "flow.errors"
local object = require "flow.object"
local json = require "flow.json"
local log = require "flow.log"
local models = require "flow.model"
local signature = require "flow.signature"
local placement = require "flow.tensor.placement"
local workers = require "flow.distribute.model_workers"
local once = require("flow.distribute.saving").once

local raise = errors.raise
local Model = models.Model
local takes = signature.takes
local saving = signature.module "flow"

-- The path of this machine for a path that a call was given; raises for anything else.
local function check_path(what, path)
  if type(path) ~= "string" or path == "" or path:find("\0", 1, true) then
    raise("%s takes the path of a file, got %s", what, errors.describe(path))
  end
  return require("flow.io").path(path)
end

-- Raises for a model without variables that was not built: there is nothing to write, or to read into.
local function need_built(model, what)
  if #model.weights > 0 or model._built then return end
  raise("%s: %s: the model has no variables yet: call it once, give it an Input or build() it", object.title(model), what)
end

-- Raises if a file is there and overwrite is false.
local function check_overwrite(what, path, overwrite)
  if not overwrite and require("flow.io").exists(path) then
    raise("%s: %s already exists, and overwrite is false", what, path)
  end
end

-- Whether a path names a folder rather than a file: it is one, or it has no ending and is nothing yet.
local function names_folder(path)
  local io = require "flow.io"
  return io.isdir(path) or not path:find("%.[^./]+$") and not io.exists(path)
end

local said = false      -- that models are .keras files

-- The path of a model's file: for "mine" the file model.keras in the folder mine, for "m.h5" m.h5.keras. Neither name is an error: save
-- often comes after hours of training, which must not be lost. Returns the path and the folder that it needs, or nil.
local function keras_path(path)
  if path:find("%.keras$") then return path end
  local folder = names_folder(path) and path or nil
  local own = folder and path .. "/model.keras" or path .. ".keras"
  if not said then
    log.warning("save: models are .keras files: %q is saved as %q, and so are others; model:save_weights(path) saves weights alone, " ..
      "model:export(path) a folder for serving", path, own)
  end
  said = true
  return own, folder
end

-- model:save("m.keras" [, { overwrite = true, include_optimizer = true }]): opens in Keras, too.
takes "path, overwrite: boolean = true, { include_optimizer: boolean = true }"
function Model:save(path, overwrite, options)
  path = check_path("save", path)
  need_built(self, "save")
  local folder
  path, folder = keras_path((path:gsub("(.)/+$", "%1")))
  once(workers.of(self), path, function()
    check_overwrite("save", path, overwrite)
    if folder then require("flow.io").makedirs(folder) end
    require("flow.saving.keras").save(self, path, options.include_optimizer)
  end)
end

-- model:save_weights("m.weights.h5"): variables of the model and its optimizer. "m.safetensors": of the model only, by their names.
takes "path, overwrite: boolean = true"
function Model:save_weights(path, overwrite)
  path = check_path("save_weights", path)
  need_built(self, "save_weights")
  local safetensors = path:find("%.safetensors$")
  if not safetensors and not path:find("%.weights%.h5$") then
    raise("save_weights: %q: the path must end in .weights.h5 or .safetensors", path)
  end
  once(workers.of(self), path, function()
    check_overwrite("save_weights", path, overwrite)
    if safetensors then require("flow.saving.safetensors").save(path, self)
    else require("flow.saving.keras").save_weights(self, path) end
  end)
end

-- model:load_weights(path [, { skip_mismatch = true }]) of a .weights.h5, .keras or .safetensors file, or of a .h5 file of Keras 2. When it
-- fails the model is unchanged; skip_mismatch: what does not fit is left unchanged, with a warning. by_name: of a file of Keras 2 by the
-- layers' names, not by their order.
takes "path, { skip_mismatch: boolean = false, by_name: boolean = false, trusted: boolean = false }"
function Model:load_weights(path, options)
  path = check_path("load_weights", path)
  need_built(self, "load_weights")
  if path:find("%.safetensors$") then
    require("flow.saving.safetensors").load_weights(self, path, options.skip_mismatch)
    return
  end
  local old = (path:find("%.h5$") or path:find("%.hdf5$")) and not path:find("%.weights%.h5$")
  if options.by_name and not old then raise("load_weights: %q: by_name = true is for .h5 files of Keras 2", path) end
  if old then
    require("flow.saving.legacy").load_weights(self, path, options)
    return
  end
  if not path:find("%.weights%.h5$") and not path:find("%.keras$") then
    raise("load_weights: %q: weights are read from .weights.h5, .keras, .safetensors and, of Keras 2, .h5 files", path)
  end
  require("flow.saving.keras").load_weights(self, path, options)
end

-- What the model is, without its weights, as Keras' JSON.
function Model:to_json()
  return json.encode(require("flow.saving.description").of(self))
end

-- The config of a model as a table, with those of its layers.
for _, class in ipairs { models.Sequential, models.Functional } do
  function class:get_config()
    local config = require "flow.saving.config"
    if not config.is_graph(self) then return models.Model.get_config(self) end
    return json.decode(json.encode(config.entry(self))).config
  end
end

-- What compile() was given, as a file describes it; compiles the model by that.
function Model:get_compile_config() return json.decode(json.encode(require("flow.saving.compiled").entry(self))) end
takes "config: table"
function Model:compile_from_config(config)
  require("flow.saving.compiled").apply(self, config, require("flow.custom_objects").all(), object.title(self) .. ": compile_from_config")
end

-- A model with fresh weights out of such a config. Of a class that a script extends, whose config is not that of a graph: what its
-- constructor makes of it.
for _, class in ipairs { models.Model, models.Sequential, models.Functional } do
  object.static(class, "from_config", function(own, config, options)
    object.check_config(own.name, config)
    if type(config.layers) ~= "table" then return require("flow.layers.entries").of_class(own, config) end
    options = errors.check_options(own.name .. ".from_config", options, { custom_objects = true })
    local built_in = own == models.Model or own == models.Sequential or own == models.Functional
    local name, given = config.output_layers and "Functional" or "Sequential", {}
    for key, value in pairs(options.custom_objects or {}) do given[key] = value end
    if not built_in then given[name] = own end
    local custom = require("flow.custom_objects").all(given)
    return require("flow.saving.config").read({ class_name = name, config = config },
      { path = own.name .. ".from_config", custom = custom, calls = 0 })
  end)
end

-- flow.load_model(path [, { custom_objects = { Scale = Scale }, compile = true, trusted = false }]). Nothing in a file is ever run.
-- trusted: reads layouts of HDF5 that only libhdf5 knows. A .h5 file is one of Keras 2, or of Keras 3 under such a name. A file that
-- space:save(path) wrote gives a flow.utils.FeatureSpace.
takes "path, { custom_objects?: table, compile: boolean = true, trusted: boolean = false, safe_mode: boolean = true }"
function saving.load_model(path, options)
  path = check_path("load_model", path)
  local io = require "flow.io"
  if not path:find("%.keras$") then      -- as save wrote it
    local inside = path:gsub("(.)/+$", "%1") .. "/model.keras"
    path = io.exists(inside) and inside or io.exists(path .. ".keras") and path .. ".keras" or path
  end
  local is_legacy = path:find "%.h5$" or path:find "%.hdf5$"
  if not is_legacy and not path:find("%.keras$") then raise("load_model: %q: models are read from .keras and .h5 files", path) end
  local model, is_space = require("flow.saving.keras")[is_legacy and "load_legacy" or "load"](path, options)
  if is_space then return model end
  placement.share_new(model.weights)      -- workers may have read different files
  for _, optimizer in ipairs(model:_optimizers()) do placement.share_new(optimizer.variables) end
  return model
end

-- The model of a file, of which the process has one for all Lua states (shared.lua). It predicts; it does not train.
takes "path"
function saving.shared(path)
  return require("flow.saving.shared")(path)
end

-- A model with fresh weights out of model:to_json().
takes "text, { custom_objects?: table, compile: boolean = true }"
function saving.model_from_json(text, options)
  if type(text) ~= "string" then raise("model_from_json takes a text, got %s", errors.describe(text)) end
  local entry = json.decode(text, "model_from_json")
  if type(entry) == "table" and type(entry.keras_version) == "string" then
    entry = require("flow.saving.legacy_models").translated(entry, entry.keras_version, "model_from_json")
  end
  return require("flow.saving.description").model(entry, "model_from_json", options)
end

-- The list of symbolic tensors of the option input_tensors, one for each Input; raises for anything else.
local function check_input_tensors(model, given)
  if type(given) ~= "table" or getmetatable(given) then given = { given } end
  local inputs = models.Sequential and object.is(model, models.Sequential) and { model._input } or model.inputs
  if #given ~= #inputs then raise("clone_model: the model has %d inputs, input_tensors holds %d", #inputs, #given) end
  for i, t in ipairs(given) do
    if not require("flow.layers.symbolic").is(t) then
      raise("clone_model: input_tensors holds what flow.Input gives, entry %d is %s", i, errors.describe(t))
    end
  end
  return given
end

-- The same model with fresh weights; custom_objects as for load_model, the others are those of config.clone. A model that is a graph is
-- compiled as the first one was, as in Keras: with a new optimizer and new metrics.
takes("model, input_tensors?, clone_function?: callable, call_function?: callable, recursive: boolean = false, "
  .. "{ custom_objects?: table }")
function saving.clone_model(model, input_tensors, clone_function, call_function, recursive, options)
  if not object.is(model, Model) then raise("clone_model takes a model, got %s", errors.describe(model)) end
  local is_plain = input_tensors == nil and not clone_function and not call_function and not recursive
  if is_plain and not require("flow.saving.config").is_graph(model) then
    return saving.model_from_json(model:to_json(), options)
  end
  local is_sequential = object.is(model, models.Sequential)
  if not is_sequential and not object.is(model, models.Functional) then
    raise("clone_model: input_tensors, clone_function and call_function are for Sequential and functional models, got %s",
      object.title(model))
  end
  if is_sequential and call_function then
    raise("clone_model: call_function is for functional models; the layers of a Sequential are listed, not called: use clone_function")
  end
  local custom = require("flow.custom_objects").all(options.custom_objects)
  local clone = require("flow.saving.config").clone(model, custom, {
    input_tensors = input_tensors ~= nil and check_input_tensors(model, input_tensors) or nil, clone_function = clone_function,
    call_function = call_function, recursive = recursive })
  require("flow.saving.compiled").copy(model, clone, custom)
  return clone
end

return saving
