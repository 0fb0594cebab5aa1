-- every_signature_spec.lua: all public functions, found by walking through flow, its modules, classes and objects: none takes one argument
-- too many, an option that it does not know, a dot where a colon belongs, or a colon where a dot belongs.
require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"
local signature = require "flow.signature"

local MODULES = { "callbacks", "config", "data", "datasets", "distribute", "image", "initializers", "io", "layers", "losses", "math",
  "metrics", "mixed_precision", "models", "nn", "optimizers", "plot", "random", "regularizers", "summary", "train" }
local FUNCTIONS = { "GradientTape", "Input", "Model", "Sequential", "args", "clear_session", "device", "fn", "image_dataset_from_directory",
  "load_model", "load_safetensors", "profile", "save_safetensors", "set_random_seed", "Variable" }

-- Names that only metatables know: what flow.losses, flow.metrics and flow.callbacks give when they are asked.
local ASKED = {
  losses = { "MeanSquaredError", "SparseCategoricalCrossentropy", "Huber", "mean_squared_error" },
  metrics = { "BinaryAccuracy", "TopKCategoricalAccuracy", "Precision", "AUC", "F1Score", "mean_squared_error" },
  callbacks = { "BackupAndRestore", "CSVLogger", "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler", "ModelCheckpoint",
    "ProgbarLogger", "ReduceLROnPlateau", "TensorBoard", "TerminateOnNaN" },
}

local functions, classes = {}, {}      -- { [f] = name }, { [class] = name }

local function visit(name, value)
  if type(value) == "function" then
    functions[value] = functions[value] or name
  elseif type(value) == "table" and rawget(value, "methods") and rawget(value, "metatable") then
    local class = value
    while class do
      classes[class] = classes[class] or class.name
      class = class.parent
    end
  end
end

for _, name in ipairs(MODULES) do
  local module = flow[name]
  for _, asked in ipairs(ASKED[name] or {}) do local _ = module[asked] end
  for key, value in pairs(module) do
    if type(key) == "string" and not key:find("^_") then visit("flow." .. name .. "." .. key, value) end
  end
end
for _, name in ipairs(FUNCTIONS) do visit("flow." .. name, flow[name]) end
for name, value in pairs(flow) do visit("flow." .. name, value) end
for name, value in pairs(flow.optimizers.schedules) do visit("flow.optimizers.schedules." .. name, value) end

-- Objects whose classes nothing names, and those that a program meets: their methods are public, too.
local input = flow.Input { 3 }
local OBJECTS = {
  flow.Model { inputs = input, outputs = flow.layers.Dense(2)(input) }, input, flow.data.Dataset.range(3):batch(1):iter(),
  flow.optimizers.Adam(), flow.optimizers.LossScaleOptimizer(flow.optimizers.SGD()), flow.optimizers.schedules.ExponentialDecay(1, 2, 3),
  flow.losses.Huber(), flow.metrics.Mean(), flow.metrics.AUC(), flow.distribute.MirroredStrategy(),
  flow.distribute.TFConfigClusterResolver(), flow.train.Checkpoint { x = flow.Variable(1) },
  flow.train.CheckpointManager(flow.train.Checkpoint { x = flow.Variable(1) }, os.tmpname() .. ".folder"),
  flow.distribute.get_replica_context(),
  flow.distribute.MirroredStrategy():experimental_distribute_dataset(flow.data.Dataset.range(3):batch(1)),
  flow.data.TFRecordWriter(os.tmpname()), flow.summary.create_file_writer(os.tmpname() .. ".events"),
}
OBJECTS[#OBJECTS + 1] = OBJECTS[15]:iter()
for _, object in ipairs(OBJECTS) do visit("", getmetatable(object).class) end

-- { name =, f =, make_self = a function or nil } of every public function and method.
local function everything()
  local list = {}
  local function add(name, f, make_self) list[#list + 1] = { name = name, f = f, make_self = make_self } end
  for f, name in pairs(functions) do
    local record = signature.of(f)
    add(name, f, record and record.method and function() return flow[name:match("^flow%.(%w+)%.")] end)
  end
  for class, name in pairs(classes) do
    for key, f in pairs(class.methods) do
      if type(f) == "function" and not key:find("^_") then
        local record = signature.of(f)
        add(name .. (record and record.method and ":" or ".") .. key, f, record and record.method and function()
          return setmetatable({ name = "made up" }, class.metatable)
        end or nil)
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

-- Functions of classes that make or extend classes: their first argument is a class.
local OF_CLASSES = { extend = true, from_record = true, new = true }
-- Functions that hand all arguments that follow to a function of the user's.
local HAND_ON = { ["flow.device"] = true, ["flow.tidy"] = true, ["flow.profile"] = true, ["GradientTape:record"] = true,
  ["tape:record"] = true }
-- They take any number of equal arguments.
local VARIADIC = { ["flow.io.join"] = true }
-- Their last argument is a table of names that users choose.
local ANY_NAMES = { ["flow.train.Checkpoint"] = true, ["flow.data.parse_example"] = true, ["flow.data.serialize_example"] = true,
  ["flow.args"] = true, ["flow.image_dataset_from_directory"] = true, ["flow.save_safetensors"] = true }

local all = everything()

describe("every public function", function()
  it("is found, and has a record", function()
    assert.is_true(#all > 500, #all)
    local without = {}
    for _, entry in ipairs(all) do
      if not signature.of(entry.f) and not OF_CLASSES[entry.name:match("[%w_]+$")] then without[#without + 1] = entry.name end
    end
    assert.equal("", table.concat(without, " "))
  end)

  it("refuses one argument too many, and says which", function()
    local accepted = {}
    for _, entry in ipairs(all) do
      local record = signature.of(entry.f)
      if record and not record.any and not record.variadic and not HAND_ON[entry.name] and not VARIADIC[entry.name] then
        local count = #record.positional + (entry.make_self and 1 or 0) + (record.options and 1 or 0)
        local given = { entry.make_self and entry.make_self() }
        given[count + 1] = 123454321
        local ok, message = pcall(function() entry.f(unpack(given, 1, count + 1)) end)
        if ok or not tostring(message):find("123454321", 1, true) or not tostring(message):find("^[^\n]*_spec%.lua:%d+: ") then
          accepted[#accepted + 1] = entry.name .. ": " .. tostring(message)
        end
      end
    end
    assert.equal("", table.concat(accepted, "\n"))
  end)

  it("refuses an option that it does not know, by its name", function()
    local accepted = {}
    for _, entry in ipairs(all) do
      local record = signature.of(entry.f)
      local reads = record and not record.any and (record.options or not record.variadic)
      if reads and not HAND_ON[entry.name] and not ANY_NAMES[entry.name] then
        local count = #record.positional + (entry.make_self and 1 or 0)
        local given = { entry.make_self and entry.make_self() }
        given[count + 1] = { no_such_option = 1 }
        local ok, message = pcall(function() entry.f(unpack(given, 1, count + 1)) end)
        if ok or not tostring(message):find("no_such_option", 1, true) or not tostring(message):find("^[^\n]*_spec%.lua:%d+: ") then
          accepted[#accepted + 1] = entry.name .. ": " .. tostring(message)
        end
      end
    end
    assert.equal("", table.concat(accepted, "\n"))
  end)

  it("says that a colon belongs where a method is called with a dot", function()
    local accepted = {}
    for _, entry in ipairs(all) do
      if entry.make_self then
        for _, first in ipairs { 1, "text", {}, flow } do
          local ok, message = pcall(function() entry.f(first) end)
          if ok or not tostring(message):find("^[^\n]*_spec%.lua:%d+: .*called with a dot") then
            accepted[#accepted + 1] = entry.name .. ": " .. tostring(message)
            break
          end
        end
      end
    end
    assert.equal("", table.concat(accepted, "\n"))
  end)

  it("says that a dot belongs where a function is called with a colon", function()
    local accepted = {}
    for _, entry in ipairs(all) do
      local module = flow
      for name in entry.name:gmatch("([%w_]+)%.") do
        if name ~= "flow" then module = module and rawget(module, name) end
      end
      if not entry.make_self and entry.name:find("^flow%.") and not OF_CLASSES[entry.name:match("[%w_]+$")] then
        local ok, message = pcall(function() entry.f(module, 1) end)
        if ok or not tostring(message):find("^[^\n]*_spec%.lua:%d+: .*with a dot") then
          accepted[#accepted + 1] = entry.name .. ": " .. tostring(message)
        end
      end
    end
    assert.equal("", table.concat(accepted, "\n"))
  end)
end)
