-- fork_spec.lua: workers whose program forks, as programs do that start helpers. A child takes no part in the cluster: it says so where it
-- tries to, ends at once however it ends, and the training of its parent goes on.
local clusters = require "spec.support.clusters"

local BEGIN = [[
  local flow = require "flow"
  local ffi = require "ffi"
  ffi.cdef "int fork(void); int waitpid(int, int *, int); unsigned alarm(unsigned);"
  -- Runs f in a child, which 20 s later is killed; prints how it has ended.
  local function in_child(f)
    io.stdout:flush()
    local child, status = ffi.C.fork(), ffi.new "int[1]"
    if child == 0 then
      ffi.C.alarm(20)
      f()
      os.exit(0, true)      -- finalizers run, too
    end
    ffi.C.waitpid(child, status, 0)
    print("=", "ended", status[0])
  end
  -- Prints the first words of why f fails.
  local function fails(f, ...)
    local ok, why = pcall(f, ...)
    print("=", ok and "went well" or tostring(why):match "this process was forked from [%w:]+")
  end
  local x, y = flow.random.normal({ 24, 4 }, { seed = 1 }), flow.random.normal({ 24, 2 }, { seed = 2 })
  local function net()
    local model = flow.Sequential { flow.Input { 4 }, flow.layers.Dense(2, { kernel_initializer = "ones" }) }
    model:compile { optimizer = "sgd", loss = "mse" }
    return model
  end
]]

-- What threads of the worker own has no owner in a child, where they are not: LeakSanitizer would name it.
local WITHOUT_LEAKS = ("ASAN_OPTIONS=%s:detect_leaks=0 "):format(os.getenv "ASAN_OPTIONS" or "")

local function launch(script, options, environment)
  environment = WITHOUT_LEAKS .. (environment or "")
  return clusters.launch(script, { begin = BEGIN, launch = "--kill-after 1 " .. options, environment = environment })
end

describe("a process that was forked from a worker", function()
  for _, case in ipairs { { "over shared memory", "" }, { "over TCP", "", "FLOW_SHARED_MEMORY=0" },
                          { "where workers wait for one that is lost", "--max-restarts 2" } } do
    it("takes no part, and nobody waits for it: " .. case[1], function()
      local said, output, code = launch([[
        local strategy = flow.distribute.MultiWorkerMirroredStrategy()
        local model = strategy.scope(net)
        model:fit(x, y, { verbose = 0 })
        in_child(function() end)
        in_child(function() fails(model.fit, model, x, y, { verbose = 0 }) end)
        in_child(function() fails(strategy.reduce, strategy, "sum", flow.ones { 2 }) end)
        in_child(function() error "the child is wrong" end)
        model:fit(x, y, { verbose = 0 })
        print("=", "trained")]], case[2], case[3])
      assert.equal(0, code, output)
      for worker = 0, 1 do
        local from = "this process was forked from worker:" .. worker
        assert.same({ "ended\t0", from, "ended\t0", from, "ended\t0", "ended\t256", "trained" }, said[worker], output)
      end
      assert.is_nil(output:find "waiting until", output)
      assert.is_nil(output:find "warning", output)
    end)
  end

  it("leaves the parent's connections to parameter servers alone", function()
    local said, output, code = launch([[
      if os.getenv("TF_CONFIG"):find '"type":"ps"' then return flow.distribute.Server():join() end
      local strategy = flow.distribute.ParameterServerStrategy()
      local model = strategy.scope(net)
      model:fit(x, y, { verbose = 0 })
      in_child(function() end)
      in_child(function() print("=", pcall(model.fit, model, x, y, { verbose = 0 })) end)
      model:fit(x, y, { verbose = 0 })
      print("=", "trained")]], "--parameter-servers 1")
    assert.equal(0, code, output)
    for worker = 0, 1 do
      assert.equal("ended\t0", said[worker][1], output)
      assert.truthy(said[worker][2]:find "false\t.*this process was forked from one that talks with the parameter servers", output)
      assert.equal("ended\t0", said[worker][3], output)
      assert.equal("trained", said[worker][4], output)
    end
  end)
end)
