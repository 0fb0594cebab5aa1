-- saved_names_spec.lua: a model that was saved under a name that does not end in .keras is found under that name.
local support = require "spec.support.init"
local flow = require "flow"

describe("a model saved under another name than a .keras file's", function()
  local folder, sink, said
  before_each(function()
    folder, sink, said = support.folder(), flow.log.sink, {}
    flow.log.sink = function(_, text) said[#said + 1] = text end
  end)
  after_each(function()
    flow.log.sink = sink
    os.execute("rm -rf " .. folder)
  end)

  it("is loaded by the same name, where it is a folder, too", function()
    local model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1) }
    flow.io.makedirs(folder .. "/there.d")
    local places = { mine = "mine/model.keras", ["a/b/mine"] = "a/b/mine/model.keras", ["there.d"] = "there.d/model.keras",
      ["slash/"] = "slash/model.keras", ["m.h5"] = "m.h5.keras", ["v1.2/m"] = "v1.2/m/model.keras" }
    for name, file in pairs(places) do
      for _ = 1, 2 do      -- again, where it is now
        model:save(folder .. "/" .. name)
        assert.is_true(flow.io.exists(folder .. "/" .. file), file)
        assert.same(model:get_weights()[1]:totable(), flow.load_model(folder .. "/" .. name):get_weights()[1]:totable())
      end
      assert.matches("overwrite is false", support.message_of(function() model:save(folder .. "/" .. name, { overwrite = false }) end))
    end
    assert.is_true(#said <= 1)      -- once in a Lua state
  end)

  it("does not take the place of a file", function()
    local model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1) }
    flow.io.write(folder .. "/notes", "mine")
    model:save(folder .. "/notes")
    assert.equal("mine", support.read(folder .. "/notes"))
    assert.is_true(flow.io.exists(folder .. "/notes.keras"))
    assert.equal(2, flow.load_model(folder .. "/notes").input_shape[2])
  end)

  it("is refused by a name under which there is none", function()
    assert.equal(('load_model: "%s/other": models are read from .keras and .h5 files'):format(folder),
      support.message_of(function() flow.load_model(folder .. "/other") end))
  end)
end)
