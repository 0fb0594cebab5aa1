-- reference_spec.lua: every public name, found by walking through flow, has one record: a sentence and an example, which runs and prints
-- what it shows. A name that has none is listed: its record belongs into a file of lua/flow/reference/texts.
local support = require "spec.support.init"
local flow = require "flow"
local reference = require "flow.reference"
local texts = require "flow.reference.texts"
local signature = require "flow.signature"

local _ = flow.help      -- the walk begins at flow
local all = reference.all()

describe("the reference", function()
  it("has a record of what it takes, a sentence and an example for every public name", function()
    assert.is_true(#all > 1100, #all)
    local without = {}
    for _, item in ipairs(all) do
      local is_taken_as_is = item.name:find("extend$") or item.name:find("^flow%.log") or type(item.f) ~= "function"      -- any arguments
      for what, value in pairs { record = item.f and signature.of(item.f) or is_taken_as_is or false, sentence = item.doc or false,
                                 example = item.example or false } do
        if not value then without[#without + 1] = item.name .. ": no " .. what end
      end
    end
    table.sort(without)
    assert.equal("", table.concat(without, "\n"))
  end)

  it("has no record of a name that is not there", function()
    local names, gone = {}, {}
    for _, item in ipairs(all) do
      for _, name in ipairs(item.names) do names[name] = true end
    end
    for _, name in ipairs(texts.names()) do
      if not names[name] then gone[#gone + 1] = name end
    end
    table.sort(gone)
    assert.equal("", table.concat(gone, "\n"))
  end)

  it("has examples that run and print what they show", function()
    local folder = support.folder()
    local lua = os.getenv("FLOW_SANITIZED") and support.command or "luajit"      -- luajit cannot load a build with sanitizers
    local output = support.run(("cd %s && %s %sspec/support/examples.lua"):format(folder, lua, support.root))
    os.execute("rm -rf " .. folder)
    assert.equal(("%d examples ran\n"):format(#all), output)
  end)
end)

-- What a program meets, made here, and looked at as the prompt does: none of its names may have escaped the walk.
describe("the names of objects", function()
  it("are all in the reference", function()
    local names = require "flow.reference.names"
    local model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1) }
    model:compile { optimizer = "sgd", loss = "mse", metrics = { "mae" } }
    local history = model:fit(flow.ones { 4, 2 }, flow.ones { 4, 1 }, { verbose = 0 })
    local dataset, strategy = flow.data.Dataset.range(4), flow.distribute.MirroredStrategy()
    local folder = support.folder()
    local writer = flow.summary.create_file_writer(folder)
    local checkpoint = flow.train.Checkpoint { model = model }
    local objects = { tensor = flow.ones { 2 }, variable = flow.Variable(1), model = model, layer = model.layers[1], dataset = dataset,
      iterator = dataset:iter(), strategy = strategy, tape = flow.GradientTape(), history = history, writer = writer,
      optimizer = flow.optimizers.Adam(), schedule = flow.optimizers.schedules.CosineDecay(1, 2), loss = flow.losses.Huber(),
      metric = flow.metrics.AUC(), callback = flow.callbacks.EarlyStopping(), checkpoint = checkpoint, fn = flow.fn(function() end),
      manager = flow.train.CheckpointManager(checkpoint, folder, { max_to_keep = 1 }), policy = flow.mixed_precision.Policy "float32" }
    local known = {}
    for _, item in ipairs(all) do
      for _, name in ipairs(item.names) do known[name:match("[%w_]+$")] = true end
    end
    local missing = {}
    for what, value in pairs(objects) do
      for name, kind in pairs(names.of(value)) do
        if kind == names.METHOD and not known[name] then missing[#missing + 1] = what .. ":" .. name end
      end
    end
    writer:close()
    os.execute("rm -rf " .. folder)
    table.sort(missing)
    assert.equal("", table.concat(missing, " "))
  end)

  it("of fields and constants have pages", function()
    assert.truthy(reference.text("tensor.shape"):find("^tensor.shape\n\nThe sizes of the dimensions"))
    assert.truthy(reference.text("model.layers"):find("^model.layers\n"))
    assert.truthy(reference.text("AUTOTUNE"):find("^flow.AUTOTUNE\n"))
    assert.truthy(reference.text("Dataset"):find("^flow.data.Dataset\n.*Methods: .*batch"))
    assert.is_false((pcall(reference.text, -1)))
  end)
end)

describe("flow.help", function()
  local function text(...) return reference.text(...) end

  it("tells what a function takes, by name or by value", function()
    local page = text "flow.one_hot"
    assert.equal(page, text(flow.one_hot))
    assert.truthy(page:find('flow.one_hot(labels, num_classes, { axis, dtype = "float32" })', 1, true), page)
    assert.truthy(page:find("Labels, counted from 0, as rows with a single 1.", 1, true), page)
    assert.truthy(page:find("print(flow.one_hot(", 1, true), page)
    assert.truthy(text("Dense"):find("kernel_initializer = \"glorot_uniform\": an initializer", 1, true))
    assert.equal(text "model:fit", text "Model.fit" ~= nil and text "model.fit")
    assert.truthy(text(flow.layers.Dense(1)):find("^flow.layers.Dense%("))
  end)

  it("lists modules, says where to begin, and what else a name may mean", function()
    assert.truthy(text(flow.callbacks):find("^flow.callbacks: .*EarlyStopping"))
    assert.truthy(text("callbacks"):find("^flow.callbacks: .*EarlyStopping"))
    assert.truthy(text():find("help(flow.layers)", 1, true))
    assert.truthy(text("mean_squared_error"):find("There are also flow.metrics.mean_squared_error", 1, true))
  end)

  it("names what is near, and what other libraries call something", function()
    local function message(what) return support.message_of(function() flow.help(what) end) end
    assert.equal('there is no help for "Dnse"; did you mean "Dense"?', message "Dnse")
    assert.equal("there is no help for \"reduce_mean\": flow.mean(x, axis, keepdims)", message "reduce_mean")
    assert.equal("help takes a name, a function, a class or an object of flow, got the number 5", message(5))
  end)
end)
