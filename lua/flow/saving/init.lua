-- init.lua: flow.load_model, and what models can do with files: save, save_weights, load_weights, to_json, get_config.
-- The format follows from the ending of the path. Of several workers that train a model the chief writes (distribute/saving.lua).

local errors = require "flow.errors"
local object = require "flow.object"
local json = require "flow.json"
local models = require "flow.model"
local arguments = require "flow.arguments"
local workers = require "flow.fit_workers"
local once = require("flow.distribute.saving").once

local raise = errors.raise
local Model = models.Model
local saving = {}

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

local function check_overwrite(what, path, options)
  if options.overwrite == false and require("flow.io").exists(path) then
    raise("%s: %s is there already, and overwrite is false", what, path)
  end
end

local SAVE = { overwrite = true, include_optimizer = true }

-- model:save("m.keras" [, { overwrite = true, include_optimizer = true }]): opens in Keras, too.
function Model:save(path, options)
  if type(options) == "boolean" then options = { overwrite = options } end
  options = errors.check_options("save", options, SAVE)
  path = check_path("save", path)
  if path:find("%.weights%.h5$") then raise("save: %q is for weights: use model:save_weights(path), or an ending .keras", path) end
  if not path:find("%.keras$") then
    if path:find("[^/]%.[^/%.]+$") then raise("save: %q: models are saved as .keras; this ending is not known", path) end
    raise("save: %q has no ending: give a file \"%s.keras\", or write a folder for serving by model:export(%q)", path, path, path)
  end
  need_built(self, "save")
  once(workers.of(self), path, function()
    check_overwrite("save", path, options)
    require("flow.saving.keras").save(self, path, options.include_optimizer ~= false)
  end)
end

-- model:save_weights("m.weights.h5"): variables of the model and its optimizer. "m.safetensors": of the model only, by their names.
function Model:save_weights(path, options)
  options = errors.check_options("save_weights", options, { overwrite = true })
  path = check_path("save_weights", path)
  need_built(self, "save_weights")
  local safetensors = path:find("%.safetensors$")
  if not safetensors and not path:find("%.weights%.h5$") then
    raise("save_weights: %q: the path must end in .weights.h5 or .safetensors", path)
  end
  once(workers.of(self), path, function()
    check_overwrite("save_weights", path, options)
    if safetensors then require("flow.saving.safetensors").save(path, self)
    else require("flow.saving.keras").save_weights(self, path) end
  end)
end

local LOAD_WEIGHTS = { trusted = true, skip_mismatch = true }

-- model:load_weights(path [, { skip_mismatch = true }]) of a .weights.h5, .keras or .safetensors file. When it fails the model is as
-- it was; skip_mismatch: what does not fit is left as it is, with a warning.
function Model:load_weights(path, options)
  options = errors.check_options("load_weights", options, LOAD_WEIGHTS)
  path = check_path("load_weights", path)
  need_built(self, "load_weights")
  if path:find("%.safetensors$") then
    require("flow.saving.safetensors").load_weights(self, path, options.skip_mismatch)
    return
  end
  if not path:find("%.weights%.h5$") and not path:find("%.keras$") then
    raise("load_weights: %q: weights are read from .weights.h5, .keras and .safetensors files", path)
  end
  require("flow.saving.keras").load_weights(self, path, options)
end

-- What the model is, without its weights, as Keras' JSON.
function Model:to_json()
  return json.encode(require("flow.saving.description").of(self))
end

local LOAD = { custom_objects = true, compile = true, trusted = true, safe_mode = true }

-- flow.load_model(path [, { custom_objects = { Scale = Scale }, compile = true, trusted = false }]). Nothing in a file is ever run.
-- trusted: reads layouts of HDF5 that only libhdf5 knows.
function saving.load_model(path, options)
  if options ~= nil and not arguments.is_options(options) then options = { custom_objects = options } end
  options = errors.check_options("load_model", options, LOAD)
  path = check_path("load_model", path)
  if not path:find("%.keras$") then
    raise("load_model: %q: models are read from .keras files%s", path, path:find("%.h5$") and
      "; a .h5 file of Keras 2 is to be saved again with Keras 3, for weights use model:load_weights" or "")
  end
  return require("flow.saving.keras").load(path, options)
end

-- A model with fresh weights out of model:to_json().
function saving.model_from_json(text, options)
  options = errors.check_options("model_from_json", options, { custom_objects = true, compile = true })
  if type(text) ~= "string" then raise("model_from_json takes a text, got %s", errors.describe(text)) end
  return require("flow.saving.description").model(json.decode(text, "model_from_json"), "model_from_json", options)
end

-- The same model with fresh weights, not compiled. custom_objects as for load_model.
function saving.clone_model(model, options)
  if not object.is(model, Model) then raise("clone_model takes a model, got %s", errors.describe(model)) end
  return saving.model_from_json(model:to_json(), options)
end

return saving
