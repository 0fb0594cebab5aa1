-- init.lua: what `require "flow"` returns. Tensors and ops are here at once; layers, models, data and the other parts are
-- loaded when a script first uses their names. A name that does not exist is an error, never nil.
--
-- The room: what require "flow" returns. May use: tensor, layers, data, distribute, plot, train, saving, checkpoint, callbacks,
-- reference, repl, jobs, models, utils, applications, keras, text.

local host = require "flow.host"      -- first: it says what this Lua lacks
local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local signature = require "flow.signature"

local flow = {
  version = native.string(native.C.flow_version()),
  library = native.path,
  AUTOTUNE = -1,
  newaxis = false,
  errors = errors,
}

for _, name in ipairs { "tensor", "zeros", "ones", "full", "eye", "arange", "linspace" } do
  flow[name] = tensor[name]
end

local internal = { operand = true, operands = true, reshape_raw = true, full_raw = true, slice_from_zero = true, slice_into_zeros = true,
  axis_from = true, positions_from_zero = true, log = true }
for name, op in pairs(ops) do
  if not internal[name] then flow[name] = op end
end

-- The functions here are guarded as they are defined.
local own = signature.module("flow", {})

-- The kernels' instruction set: "avx512", "avx2" or "plain".
function own.isa()
  return native.string(native.C.flow_isa())
end

-- Whether a value is a tensor, also one of a trace; false of variables and symbolic tensors.
function own.is_tensor(value)
  return native.is_tensor(value)
end

-- Whether a value is a flow.Variable.
function own.is_variable(value)
  return native.is_variable(value)
end

for name, f in pairs(own) do flow[name] = f end
signature.namespaces[flow] = "flow"

-- Names that another module gives: { module, field }, or the module itself.
local parts = {
  device = { "flow.devices", "device" }, config = { "flow.config" }, random = { "flow.tensor.random" },
  Variable = { "flow.tensor.variable", "Variable" }, set_random_seed = { "flow.tensor.random", "set_seed" },
  GradientTape = { "flow.tensor.tape", "GradientTape" }, custom_gradient = { "flow.tensor.tape", "custom_gradient" },
  fn = { "flow.tensor.fn", "fn" }, print = { "flow.tensor.composed.print", "print" },
  shape = { "flow.layers.classes.specs", "shape" }, TensorSpec = { "flow.layers.classes.specs", "TensorSpec" },
  raw_op = { "flow.tensor.composed.raw_op", "raw_op" },
  profile = { "flow.profile", "profile" }, args = { "flow.command_line", "parse" }, repl = { "flow.repl" },
  tidy = { "flow.tensor.memory", "tidy" },
  frombuffer = { "flow.tensor.memory", "frombuffer" }, save_npy = { "flow.tensor.memory", "save_npy" },
  load_npy = { "flow.tensor.memory", "load_npy" }, load_npz = { "flow.tensor.memory", "load_npz" },
  save_npz = { "flow.tensor.memory", "save_npz" },
  layers = { "flow.layers" }, Input = { "flow.models", "Input" }, Sequential = { "flow.models", "Sequential" },
  Model = { "flow.models", "Model" }, models = { "flow.models" }, load_model = { "flow.models", "load_model" },
  optimizers = { "flow.train.optimizers" }, losses = { "flow.train.losses" }, metrics = { "flow.train.metrics" },
  clear_session = { "flow.models", "clear_session" },
  timeseries_dataset_from_array = { "flow.data.timeseries", "from_array" },
  strings = { "flow.tensor.text.string_ops" }, text = { "flow.text" }, image = { "flow.tensor.image" },
  image_dataset_from_directory = { "flow.data.image_dataset", "from_directory" },
  text_dataset_from_directory = { "flow.data.text_dataset", "from_directory" },
  audio_dataset_from_directory = { "flow.data.audio_dataset", "from_directory" },
  initializers = { "flow.layers.choices", "initializers" }, regularizers = { "flow.layers.choices", "regularizers" },
  constraints = { "flow.layers.constraints" },
  io = { "flow.io" }, audio = { "flow.tensor.text.audio" }, plot = { "flow.plot" }, math = { "flow.tensor.math" },
  log = { "flow.tensor.log" },      -- messages, and still the logarithm
  summary = { "flow.callbacks.events" }, utils = { "flow.utils" }, keras = { "flow.keras" },
  save_safetensors = { "flow.saving.safetensors", "save" }, load_safetensors = { "flow.saving.safetensors", "load" },
  train = { "flow.checkpoint" }, nn = { "flow.distribute.nn" }, mixed_precision = { "flow.layers.mixed_precision" },
  jobs = { "flow.jobs" }, help = { "flow.reference", "help" }, applications = { "flow.applications" },
  data = { "flow.data" }, callbacks = { "flow.callbacks" }, datasets = { "flow.data.datasets" }, distribute = { "flow.distribute" },
}

-- Adds serialize, deserialize and get to a library of classes.
local function add_lookups(name)
  require "flow.keras.lookups" (name, require(name), function() return require "flow.saving.objects" end)
end

-- What a part has from rooms above it is passed to it when it is loaded.
local pass = {
  ["flow.reference"] = function(reference) reference.flow = flow end,
  ["flow.repl"] = function(repl) repl.flow = flow end,      -- what its users call flow
  ["flow.keras"] = function(keras)
    keras._above = { flow = flow, ops = ops, image = function() return require "flow.tensor.composed.image" end }
  end,
  ["flow.utils"] = function(utils) rawset(utils, "_above", { files = function() return require "flow.saving.keras" end }) end,
  ["flow.models"] = function()      -- whose compile() reads descriptions of these
    for _, library in ipairs { "losses", "metrics", "optimizers" } do add_lookups("flow.train." .. library) end
  end,
  ["flow.layers"] = function()
    require("flow.layers.symbolic").class_of = function(op) return require("flow.saving.operations").class_name(op) end
  end,
  ["flow.distribute"] = function(distribute)
    distribute.above.verify = function() return require "flow.callbacks.verify_replicas" end
  end,
}

-- The last to be asked for a module: one of ours that nobody finds cannot be opened. One for all copies of flow in a state.
local package, debug, registry = rawget(_G, "package"), debug, debug.getregistry()
if type(package) == "table" and package.loaders and not registry["flowlua.unopened"] then
  registry["flowlua.unopened"] = true
  local asked = false      -- what finds the position of an error asks for modules, too
  table.insert(package.loaders, function(name)
    if asked or not name:find "^flow%." then return end
    local opened, why = host.readable(debug.getinfo(1, "S").source:sub(2))
    if opened or why:find "No such file" then return end
    asked = true
    why = errors.text("%s cannot be loaded: %s: close some, or raise the limit (ulimit -n)", name, why:match "[^:]*$":sub(2))
    asked = false
    error(why, 0)
  end)
end

return setmetatable(flow, {
  __newindex = function(_, name, value)
    errors.check_assigned("flow", flow, name, value)
    rawset(flow, name, value)
  end,
  names = function()
    local names = {}
    for name in pairs(parts) do names[#names + 1] = name end
    for _, name in ipairs(require("flow.tensor.composed").names()) do names[#names + 1] = name end
    return names
  end,
  __index = function(_, name)
    local part = parts[name]
    local op = not part and ops[name]
    if op then
      rawset(flow, name, op)
      return op
    end
    if not part then
      local names = {}
      for _, list in ipairs { flow, parts } do
        for key in pairs(list) do names[key] = true end
      end
      for _, key in ipairs(require("flow.tensor.composed").names()) do names[key] = true end
      errors.raise("flow has no field %q%s", tostring(name), errors.elsewhere("flow", name) or errors.suggestion(tostring(name), names))
    end
    local ready, problem = pcall(require, "flow.classes.loading")
    if not ready then
      local modules = rawget(_G, "package")
      if modules then modules.loaded["flow.classes.loading"] = nil end
      error(problem, 0)
    end
    local value = require(part[1])
    if pass[part[1]] then pass[part[1]](value) end
    add_lookups(part[1])
    if part[2] then value = value[part[2]] end
    if value == nil then errors.raise("flow.%s is not part of this build", name) end
    if not part[2] then
      if getmetatable(value) then signature.close(value) else errors.strict("flow." .. name, value) end
    end
    rawset(flow, name, value)
    return value
  end,
})
