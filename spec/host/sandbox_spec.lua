-- sandbox_spec.lua: states that lack something: other Luas are told in one sentence, a LuaJIT state without os, io and package works.
local support = require "spec.support.init"

local path = ("LUA_PATH='%slua/?.lua;%slua/?/init.lua'"):format(support.root, support.root)

local function run(program, text)
  local output = support.run(("env %s FLOWLUA_LIB= %s %s 2>&1"):format(path, program, support.file("script.lua", text)))
  return output
end

describe("flow in a Lua that is not LuaJIT", function()
  for _, version in ipairs { "5.1", "5.2", "5.3", "5.4" } do
    it("says in one sentence what it needs: lua" .. version, function()
      if support.run("command -v lua" .. version) == "" then return pending("lua" .. version .. " is not installed") end
      local output = run("lua" .. version, 'print((select(2, pcall(require, "flow"))))')
      assert.equal(("flowlua needs LuaJIT 2.1, this is Lua %s: run the program with luajit or with flowlua\n"):format(version), output)
    end)
  end
end)

describe("a state without", function()
  local LEARN = [[
    local flow = require "flow"
    local model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1) }
    model:compile { optimizer = "sgd", loss = "mse" }
    local history = model:fit(flow.ones { 8, 2 }, flow.ones { 8, 1 }, { epochs = 2, verbose = 0 })
    local data = flow.data.Dataset.from_tensor_slices { flow.ones { 8, 2 }, flow.ones { 8, 1 } }:batch(4)
    model:fit(data, { verbose = 0 })
    print(#history.epoch, model:predict(flow.ones { 1, 2 }, { verbose = 0 }).shape[1])
  ]]

  it("os, io and package trains and predicts; what needs them says so", function()
    if os.getenv "FLOW_SANITIZED" then return pending("plain luajit cannot load a build with sanitizers") end
    local output = run("luajit", [[os, io, package.cpath, package.searchpath = nil, nil, nil, nil
      local print = print
      package = nil]] .. "\n" .. LEARN .. [[
      assert(flow.random:get_state())
      print(pcall(flow.callbacks.CSVLogger, "log.csv"))
      local ok, message = pcall(model.fit, model, flow.ones { 8, 2 }, flow.ones { 8, 1 },
        { verbose = 0, callbacks = { flow.callbacks.CSVLogger "log.csv" } })
      print(ok, message)]])
    assert.truthy(output:find("^2\t1\n"), output)
    assert.truthy(output:find("false\t.*flowlua needs io.open here, and this state does not have Lua's io library"), output)
  end)

  it("debug, which the host took once flow was loaded, trains and says what was wrong and where", function()
    if os.getenv "FLOW_SANITIZED" then return pending("plain luajit cannot load a build with sanitizers") end
    local output = run("luajit", [[require "flow"
      debug = nil]] .. "\n" .. LEARN .. [[
      print(pcall(flow.zeros, "three"))
      print(pcall(function() flow.zeros { 2 }:reshape { 3 } end))
      print(pcall(function() flow.fn(function(x) return x:matmul(x) end)(flow.ones { 2, 3 }) end))
      print(pcall(function() return flow.layers.Dense { unit = 3 } end))
      local Double = flow.layers.Layer:extend "Double"
      function Double:init(options, factor) Double.parent.init(self, options) self.factor = factor or 2 end
      function Double:call(x, training) return x * self.factor end
      print(Double()(flow.ones { 2 }):totable()[2])
      local Own = flow.Model:extend "Own"
      function Own:init() Own.parent.init(self) self.dense = flow.layers.Dense(1) end
      function Own:call(x, training) return self.dense(x) end
      function Own:train_step(x, y) return Own.parent.train_step(self, x, y) end
      local own = Own()
      own:compile { optimizer = "sgd", loss = "mse" }
      print(#own:fit(flow.ones { 8, 2 }, flow.ones { 8, 1 }, { verbose = 0 }).epoch)
      for x in flow.data.Dataset.range(3):map(function(x) return x * 2 end):batch(3):iter() do print(x:totable()[3]) end
      print(pcall(function() for _ in flow.data.Dataset.range(3):map(function() error "meant" end):iter() do end end))]])
    local script = "[^ ]*script%.lua:%d+: "
    for i, expected in ipairs {
      "^2\t1$", "^false\t" .. script .. "flow%.zeros: ", "^false\t" .. script .. ".*reshape", "^false\t" .. script .. ".*matmul",
      "^false\t" .. script .. "Dense", "^2$", "^1$", "^4$", "^false\t" .. script .. ".*meant"
    } do
      local line = output:match(("[^\n]*\n"):rep(i - 1) .. "([^\n]*)")
      assert.truthy(line:find(expected), line .. "\n" .. output)
    end
  end)

  it("debug, or the ffi, is told so", function()
    assert.equal("false\tflowlua needs Lua's debug library, for the registry and for the lines that messages name, and this state does not "
      .. "have it\n", run("luajit", 'debug = nil print(pcall(require, "flow"))'))
    local output = run("luajit", [[package.loaded.ffi, package.preload.ffi = nil, nil
      table.remove(package.loaders or package.searchers, 1)
      print(pcall(require, "flow"))]])
    assert.equal("false\tflowlua needs LuaJIT's FFI, and this state does not let it load the module ffi: a sandbox has to allow it\n",
      output)
  end)
end)
