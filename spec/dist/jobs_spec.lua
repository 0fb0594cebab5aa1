-- jobs_spec.lua: jobs of this machine: flowlua submit starts them in the background, flowlua jobs shows, follows and ends them.
local support = require "spec.support.init"

-- A folder for jobs and a function that runs a line of flowlua in it.
local function workplace(script)
  local folder = support.folder()
  if script then
    local file = assert(io.open(folder .. "/task.lua", "wb"))
    file:write(script)
    file:close()
  end
  return function(line)
    return support.run(("cd %s && XDG_STATE_HOME=%s/state FLOWLUA_PATH=%slua timeout -k 5 100 %s %s"):format(folder, folder, support.root,
      support.program, line))
  end, folder
end

local SLEEP = "print 'ready' io.stdout:flush() os.execute 'sleep 60'"

-- Waits until the job's log has this text.
local function await(run, name, text)
  for _ = 1, 200 do
    if run("jobs logs " .. name):find(text, 1, true) then return end
    os.execute "sleep 0.05"
  end
  error("the log does not say " .. text .. ":\n" .. run("jobs logs " .. name))
end

describe("a job of this machine", function()
  it("trains with two workers, and its log and exit code can be had", function()
    local run, folder = workplace()
    local output, code = run(("submit digits --worker-count 1 --job-dir %s/run %slua/examples/multi_worker.lua -- --epochs 1 "
      .. "--steps-per-epoch 5"):format(folder, support.root))
    assert.equal(0, code, output)
    local followed, ended = run("jobs logs -f digits")
    assert.equal(0, ended)
    assert.truthy(followed:find("%[chief:0%] chief 0 of 2 workers: test accuracy 0%.%d+\n"), followed)
    assert.truthy(followed:find("%[worker:0%] worker 0 of 2 workers: test accuracy 0%.%d+\n"), followed)
    for _ = 1, 100 do
      output, code = run("jobs status digits")
      if not output:find "running" then break end
      os.execute "sleep 0.05"
    end
    assert.equal("digits                   local        succeeded (exit code 0)\n", output)
    assert.equal(0, code)
    assert.equal(output, (run("jobs")))
    assert.equal(followed, (run("jobs logs digits")))
    local file = assert(io.open(folder .. "/run/mnist.keras", "rb"))
    file:close()
    assert.equal("flowlua jobs: the job digits does not run: it has succeeded\n", (run("jobs cancel digits")))
  end)

  it("is ended by SIGTERM, with all that it started", function()
    local run = workplace(SLEEP)
    run("submit long --worker-count 1 task.lua")
    await(run, "long", "[worker:0] ready")
    local output, code = run("jobs status long")
    assert.equal("long                     local        running\n", output)
    assert.equal(0, code)
    output, code = run("submit long task.lua")
    assert.equal("flowlua submit: the job long is still running: flowlua jobs cancel long, or another name\n", output)
    assert.equal(1, code)
    assert.equal("the job long was told to end: flowlua jobs status long\n", (run("jobs cancel long")))
    run("jobs logs -f long")
    for _ = 1, 300 do
      output, code = run("jobs status long")
      if not output:find "running" then break end
      os.execute "sleep 0.05"
    end
    assert.truthy(output:find "^long +local +cancelled %(exit code %d+%)\n$", output)
    assert.equal(1, code)
  end)

  it("that fails says so, as does one that runs out of time, and another may have its name", function()
    local run = workplace("if arg[1] == 'wait' then os.execute 'sleep 60' end error 'no such thing'")
    for _, case in ipairs { { "", "", "failed %(exit code 1%)" }, { "--max-running-time 1s ", "-- wait", "failed %(exit code 124%)" } } do
      run("submit wrong " .. case[1] .. "task.lua " .. case[2])
      local log, output = run("jobs logs -f wrong"), nil
      for _ = 1, 200 do
        output = run("jobs status wrong")
        if not output:find "running" then break end
        os.execute "sleep 0.05"
      end
      assert.truthy(output:find(case[3]), output)
      if case[1] == "" then assert.truthy(log:find("no such thing", 1, true), log) end
    end
  end)

  it("gets its modules' and its own arguments, variables, and starts workers again if asked to", function()
    local run, folder = workplace()
    os.execute(("mkdir %s/trainer"):format(folder))
    local file = assert(io.open(folder .. "/trainer/task.lua", "wb"))
    file:write("print(os.getenv 'A', os.getenv 'FLOW_JOB_DIR', os.getenv 'FLOW_MAX_RESTARTS', table.concat(arg, '|'))")
    file:close()
    run("submit m --env A=\"x y\" --job-dir d --max-restarts 2 --worker-count 1 -m trainer.task -- 'a b' --c")
    local log = run("jobs logs -f m")
    for _, task in ipairs { "chief:0", "worker:0" } do
      assert.truthy(log:find(("[%s] x y\td\t2\t--job-dir|d|a b|--c\n"):format(task), 1, true), log)
    end
  end)
end)
