-- tensor_board_spec.lua: flow.callbacks.TensorBoard writes the tags and steps that Keras' writes (tensor_board.py).
local support = require "spec.support.init"
local messages = require "spec.support.protobuf"
local flow = require "flow"
local layers = flow.layers
local cases = require "spec.golden.tensor_board"

-- "train scalars epoch_loss: 0 1 2" for every tag of every file.
local function listed(folder)
  local list = {}
  for _, run in ipairs { "train", "validation" } do
    for _, path in ipairs(flow.io.glob(folder .. "/" .. run .. "/*tfevents*")) do
      local steps = {}
      for event in flow.data.TFRecordDataset { path }:iter() do
        local summary = messages.field(event, 5)
        if summary then
          local value = messages.field(summary, 1)
          local name = ("%s %s %s"):format(run, messages.field(messages.field(messages.field(value, 9), 1), 1), messages.field(value, 1))
          steps[name] = steps[name] or {}
          table.insert(steps[name], messages.field(event, 2) or 0)
        end
      end
      for name, all in pairs(steps) do list[#list + 1] = name .. ": " .. table.concat(all, " ") end
    end
  end
  table.sort(list)
  return list
end

describe("TensorBoard", function()
  it("without a folder writes to the one that Vertex AI names, or to logs", function()
    local ffi = require "ffi"
    pcall(ffi.cdef, "int setenv(const char *name, const char *value, int overwrite); int unsetenv(const char *name);")
    ffi.C.setenv("AIP_TENSORBOARD_LOG_DIR", "/somewhere", 1)
    local of_vertex = flow.callbacks.TensorBoard()
    ffi.C.unsetenv("AIP_TENSORBOARD_LOG_DIR")
    assert.equal("/somewhere", of_vertex.log_dir)
    assert.equal("logs", flow.callbacks.TensorBoard().log_dir)
    assert.equal("mine", flow.callbacks.TensorBoard("mine").log_dir)
  end)
end)

describe("TensorBoard as Keras':", function()
  for _, case in ipairs(cases) do
    it(case.name, function()
      local folder = support.file("empty", ""):match("^(.*)/") .. "/logs"
      local model = flow.Sequential({ layers.Input { 5, 5, 3 }, layers.Conv2D(2, 3, { name = "conv" }), layers.Flatten(),
                                      layers.Dense(3, { name = "dense" }) }, { name = "model" })
      model:compile { optimizer = flow.optimizers.SGD(0.125), loss = "mse", metrics = { "mae" } }
      local x, y = flow.ones { 8, 5, 5, 3 }, flow.ones { 8, 3 }
      case.options.write_graph = false
      local callback = flow.callbacks.TensorBoard(folder, case.options)
      model:fit(x, y, { batch_size = 2, epochs = 3, verbose = 0, validation_data = { x, y }, callbacks = { callback } })
      model:evaluate(x, y, { verbose = 0, callbacks = { callback } })
      local expected = {}
      for i, line in ipairs(case) do expected[i] = line end
      table.sort(expected)
      local found = {}
      for _, line in ipairs(listed(folder)) do
        if line:find("^%S+ %S+ " .. case.only) then found[#found + 1] = line end
      end
      assert.same(expected, found)
    end)
  end

  it("the model for the tab Graphs", function()
    local folder = support.file("empty", ""):match("^(.*)/") .. "/logs"
    local model = flow.Sequential { layers.Input { 2 }, layers.Dense(3) }
    model:compile { optimizer = "sgd", loss = "mse" }
    model:fit(flow.ones { 4, 2 }, flow.ones { 4, 3 }, { verbose = 0, callbacks = { flow.callbacks.TensorBoard(folder) } })
    local found
    for event in flow.data.TFRecordDataset(flow.io.glob(folder .. "/train/*")):iter() do
      local summary = messages.field(event, 5)
      local value = summary and messages.field(summary, 1)
      if value and messages.field(value, 1) == "keras" then found = value end
    end
    assert.equal(model:to_json(), messages.field(messages.field(found, 8), 8))
    local plugin = messages.field(messages.field(found, 9), 1)
    assert.same({ "graph_keras_model", "1" }, { messages.field(plugin, 1), messages.field(plugin, 2) })
  end)

  it("what is not supported is named", function()
    assert.truthy(support.message_of(function() flow.callbacks.TensorBoard { profile_batch = 2 } end):find("profile_batch is not", 1, true))
    assert.truthy(support.message_of(function() flow.callbacks.TensorBoard { update_freq = "never" } end)
      :find('update_freq is "epoch", "batch" or a number of batches', 1, true))
  end)
end)
