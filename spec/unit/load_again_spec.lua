-- load_again_spec.lua: a part of flow whose first use was cut short, by a full stack or by Ctrl-C, is there when it is used again.
local support = require "spec.support.init"

describe("a module in whose loading an error was raised", function()
  for task, least in pairs { data = 8, fit = 15, others = 10 } do
    it("is loaded anew: " .. task, function()
      if os.getenv "FLOW_SANITIZED" then return pending "luajit, which loads the library, cannot load a build with sanitizers" end
      local step = task == "data" and 4 or 9
      local text = support.run(("luajit %sspec/support/load_again.lua %s %d 2>&1"):format(support.root, task, step))
      local tried = text:match "^done\t(%d+)\n$"
      assert.is_true(tonumber(tried or 0) >= least, text)
    end)
  end

  it("is loaded anew after recursion without an end at the prompt", function()
    local lines = { "function deep() local ok = pcall(deep) return flow.metrics.AUC() end", "deep()", "flow.metrics.AUC().name ~= nil" }
    local script = support.file("deep.lua", ([[
      local said, at, lines = {}, 0, { %q, %q, %q }
      flow.repl(function()
        at = at + 1
        return lines[at]
      end, function(text) said[#said + 1] = text end)
      print(said[#said])]]):format(unpack(lines)))
    local output = support.run(("%s %s 2>&1"):format(support.command, script))
    assert.equal("true\n", output)
  end)
end)

describe("a module that is asked for while it is loaded", function()
  -- flow.part takes a while to load, and so much memory that the collector would run a finalizer that asks for it, too.
  local function told(interrupt)
    local folder = support.folder()
    os.execute(("mkdir %s/flow"):format(folder))
    support.write(folder .. "/flow/part.lua", "for i = 1, 300000 do local _ = { i } end\nreturn {}\n")
    local script = support.file("asks.lua", ([[
      require("jit").off()
      package.path = package.path .. ";%s/?.lua"
      require("flow")
      require "flow.classes.loading"
      local seen
      local function ask() seen = require "flow.part" end
      %s
      local part = require "flow.part"
      debug.sethook()
      if collectgarbage "isrunning" then collectgarbage() end
      print(seen == part, collectgarbage "isrunning")]]):format(folder, interrupt))
    return (support.run(("%s %s 2>&1"):format(support.command, script)))
  end

  it("is loaded once: by a finalizer", function()
    assert.equal("true\ttrue\n", told "getmetatable(newproxy(true)).__gc = ask")
  end)

  it("is loaded once: by a hook", function()
    assert.equal("true\ttrue\n", told "debug.sethook(function() debug.sethook() ask() end, '', 100000)")
  end)

  it("leaves the collector stopped where the host has stopped it", function()
    assert.equal("true\tfalse\n", told "collectgarbage 'stop' ask()")
  end)
end)
