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

local function check_path(what, path)
  if type(path) ~= "string" or path == "" or path:find("\0", 1, true) then
    raise("%s takes the path of a file, got %s", what, errors.describe(path))
  end
  return require("flow.io").path(path)
end

local function need_built(model, what)
  if #model.weights > 0 or model._built then return end
  raise("%s: %s: the model has no variables yet: call it once, give it an Input or build() it", object.title(model), what)
end

local function check_overwrite(what, path, overwrite)
  if not overwrite and require("flow.io").exists(path) then
    raise("%s: %s is there already, and overwrite is false", what, path)
  end
end

-- The path of a model's file. Another ending is not an error: save often comes after hours of training, which must not be lost.
local function keras_path(path)
  if path:find("%.keras$") then return path end
  log.warning("save: models are .keras files: %q is saved as %q; model:save_weights(path) saves weights alone, model:export(path) a " ..
    "folder for serving", path, path .. ".keras")
  return path .. ".keras"
end

-- model:save("m.keras" [, { overwrite = true, include_optimizer = true }]): opens in Keras, too.
takes "path, overwrite: boolean = true, { include_optimizer: boolean = true }"
function Model:save(path, overwrite, options)
  path = check_path("save", path)
  need_built(self, "save")
  path = keras_path((path:gsub("(.)/+$", "%1")))
  once(workers.of(self), path, function()
    check_overwrite("save", path, overwrite)
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
-- fails the model is as it was; skip_mismatch: what does not fit is left as it is, with a warning. by_name: of a file of Keras 2 by the
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
    return json.decode(json.encode(require("flow.saving.config").entry(self))).config
  end
end

-- flow.load_model(path [, { custom_objects = { Scale = Scale }, compile = true, trusted = false }]). Nothing in a file is ever run.
-- trusted: reads layouts of HDF5 that only libhdf5 knows.
takes "path, { custom_objects?: table, compile: boolean = true, trusted: boolean = false, safe_mode: boolean = true }"
function saving.load_model(path, options)
  path = check_path("load_model", path)
  if not path:find("%.keras$") then
    raise("load_model: %q: models are read from .keras files%s", path, path:find("%.h5$") and
      "; a .h5 file of Keras 2 is to be saved again with Keras 3, for weights use model:load_weights" or "")
  end
  local model = require("flow.saving.keras").load(path, options)
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
  return require("flow.saving.description").model(json.decode(text, "model_from_json"), "model_from_json", options)
end

-- The same model with fresh weights, not compiled. custom_objects as for load_model.
takes "model, { custom_objects?: table }"
function saving.clone_model(model, options)
  if not object.is(model, Model) then raise("clone_model takes a model, got %s", errors.describe(model)) end
  return saving.model_from_json(model:to_json(), options)
end

return saving
