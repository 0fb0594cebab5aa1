-- public.lua: all public functions and methods, found by walking through flow, its modules, classes and objects.
local support = require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"
local signature = require "flow.signature"

local MODULES = { "callbacks", "config", "constraints", "data", "datasets", "distribute", "image", "initializers", "io", "jobs", "layers",
  "losses", "math", "metrics", "mixed_precision", "models", "nn", "optimizers", "plot", "random", "regularizers", "summary", "train",
  "utils" }
local FUNCTIONS = { "GradientTape", "Input", "Model", "Sequential", "args", "clear_session", "device", "fn", "image_dataset_from_directory",
  "load_model", "load_safetensors", "profile", "raw_op", "save_safetensors", "set_random_seed", "Variable" }

-- Names that only metatables know: what flow.losses, flow.metrics and flow.callbacks give when they are asked.
local ASKED = {
  losses = { "MeanSquaredError", "SparseCategoricalCrossentropy", "Huber", "mean_squared_error" },
  metrics = { "BinaryAccuracy", "TopKCategoricalAccuracy", "Precision", "AUC", "F1Score", "mean_squared_error" },
  callbacks = { "BackupAndRestore", "CSVLogger", "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler", "ModelCheckpoint",
    "ProgbarLogger", "ReduceLROnPlateau", "RemoteMonitor", "SwapEMAWeights", "TensorBoard", "TerminateOnNaN",
    "VerifyReplicas" },
}

-- pairs in the order of the names: under which of its names a function is found does not change from run to run.
local function sorted(list)
  local names, i = {}, 0
  for name in pairs(list) do
    if type(name) == "string" then names[#names + 1] = name end
  end
  table.sort(names)
  return function()
    i = i + 1
    local name = names[i]
    return name, name and list[name]
  end
end

local functions, classes = {}, {}      -- { [f] = name }, { [class] = name }; a class that can be called is a function, too

local function visit(name, value)
  if type(value) == "function" then
    functions[value] = functions[value] or name
  elseif type(value) == "table" and rawget(value, "methods") and rawget(value, "metatable") then
    local class = value
    if name ~= "" and signature.of(class) then functions[class] = functions[class] or name end
    while class do
      classes[class] = classes[class] or class.name
      class = class.parent
    end
  end
end

for _, name in ipairs(MODULES) do
  local module = flow[name]
  for _, asked in ipairs(ASKED[name] or {}) do local _ = module[asked] end
  for key, value in sorted(module) do
    if not key:find("^_") then visit("flow." .. name .. "." .. key, value) end
  end
end
for _, name in ipairs(FUNCTIONS) do visit("flow." .. name, flow[name]) end
for name, value in sorted(flow) do visit("flow." .. name, value) end
for name, value in sorted(flow.optimizers.schedules) do visit("flow.optimizers.schedules." .. name, value) end

-- What makes an object of each class that a program meets: their methods are public, too.
local input = flow.Input { 3 }
local function compiled()
  local model = flow.Sequential { flow.layers.Input { 3 }, flow.layers.Dense(2) }
  model:compile { loss = "mse" }
  return model
end
local function checkpoint() return flow.train.Checkpoint { x = flow.Variable(1) } end
local function distributed()
  return flow.distribute.MirroredStrategy():experimental_distribute_dataset(flow.data.Dataset.range(3):batch(1))
end
local MAKERS = {
  compiled, function() return flow.Model { inputs = input, outputs = flow.layers.Dense(2)(input) } end, function() return input end,
  function() return flow.layers.Dense(2) end, function() return flow.layers.Normalization() end,
  function() return flow.data.Dataset.range(3) end, function() return flow.data.Dataset.range(3):batch(1):iter() end,
  function() return flow.optimizers.Adam() end, function() return flow.optimizers.LossScaleOptimizer(flow.optimizers.SGD()) end,
  function() return flow.optimizers.schedules.ExponentialDecay(1, 2, 3) end, function() return flow.losses.Huber() end,
  function() return flow.metrics.Mean() end, function() return flow.metrics.Sum() end, function() return flow.metrics.AUC() end,
  function() return flow.metrics.F1Score() end, function() return flow.metrics.RootMeanSquaredError() end,
  function() return flow.distribute.MirroredStrategy() end, function() return flow.distribute.TFConfigClusterResolver() end, checkpoint,
  function() return flow.train.CheckpointManager(checkpoint(), support.path(".folder")) end,
  function() return flow.distribute.get_replica_context() end, distributed, function() return distributed():iter() end,
  function() return flow.data.TFRecordWriter(support.path()) end,
  function() return flow.summary.create_file_writer(support.path(".events")) end, function() return flow.callbacks.History() end,
  function() return flow.random.SeedGenerator(1) end, function() return flow.random.Generator.from_seed(1) end,
  function() return flow.jobs.CustomJob("job", { {} }) end, function() return flow.jobs.CustomContainerTrainingJob("job", "image") end,
}
local makers = {}      -- by class
for _, make in ipairs(MAKERS) do
  local class = getmetatable(make()).class
  assert(rawget(class, "metatable"), class.name .. " is not a class of object.lua: its methods are not guarded")
  visit("", class)
  while class do
    makers[class] = makers[class] or make
    class = class.parent
  end
end

-- { name =, f =, make_self = a function or nil, real = } of every public function and method. make_self makes an object of the method's
-- class; where nothing above makes one, an empty one, which is not real.
local function everything()
  local list = {}
  local function add(name, f, make_self, made_up)
    list[#list + 1] = { name = name, f = f, make_self = make_self, real = not made_up }
  end
  for f, name in pairs(functions) do
    local record = signature.of(f)
    add(name, f, record and record.method and function() return flow[name:match("^flow%.(%w+)%.")] end)
  end
  for class, name in pairs(classes) do
    for key, f in pairs(class.methods) do
      if type(f) == "function" and not key:find("^_") then
        local record = signature.of(f)
        add(name .. (record and record.method and ":" or ".") .. key, f, record and record.method and (makers[class] or function()
          return setmetatable({ name = "made up" }, class.metatable)
        end) or nil, not makers[class])
      end
    end
  end
  local function methods_of(title, list_of, make_self)
    for key, f in pairs(list_of) do
      if type(f) == "function" then add(title .. ":" .. key, f, make_self) end
    end
  end
  methods_of("tensor", native.methods, function() return flow.zeros { 2 } end)
  local variable, tape, fn = flow.Variable(1), flow.GradientTape(), flow.fn(function() end)
  for title, object in pairs { variable = variable, tape = tape, fn = fn } do
    for key in pairs(getmetatable(object)) do
      if type(key) == "table" then methods_of(title, key, function() return object end) end
    end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

return everything()
