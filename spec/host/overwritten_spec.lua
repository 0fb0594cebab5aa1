-- overwritten_spec.lua: files that are read are not mapped: whoever overwrites, cuts or removes one changes nothing for those who read it.
local flow = require "flow"
local support = require "spec.support.init"

local function maps()
  local file = assert(io.open("/proc/self/maps"))
  local text = file:read("*a")
  file:close()
  return text
end

describe("a file that is overwritten in place after it was read", function()
  local folder = support.file("folder", ""):match("^(.*)/")
  for _, ending in ipairs { "keras", "weights.h5", "safetensors" } do
    it("changes no weight: " .. ending, function()
      local path = ("%s/model.%s"):format(folder, ending)
      local function make()
        flow.clear_session()      -- names count from 1 again
        return flow.Sequential { flow.layers.Input { 64 }, flow.layers.Dense(512, { activation = "relu" }), flow.layers.Dense(4) }
      end
      local made = make()
      if ending == "keras" then made:save(path) else made:save_weights(path) end
      local model = ending == "keras" and flow.load_model(path) or make()
      if ending ~= "keras" then model:load_weights(path) end
      local x = flow.random.normal({ 3, 64 }, { seed = 1 })
      local before = model:predict(x, { verbose = 0 }):totable()
      assert.is_nil(maps():find("model." .. ending, 1, true))
      for _, command in ipairs { "dd if=/dev/zero of=%q bs=4096 count=8 conv=notrunc 2>/dev/null", "truncate -s 0 %q", "rm %q" } do
        assert.equal(0, os.execute(command:format(path)))
        assert.same(before, model:predict(x, { verbose = 0 }):totable())
        assert.same(made:get_weights()[1]:totable(), model:get_weights()[1]:totable())
      end
    end)
  end
end)
