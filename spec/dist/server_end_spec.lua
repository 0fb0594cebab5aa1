-- server_end_spec.lua: how the tasks of a job with parameter servers end: a worker that comes back when the chief has ended ends with it,
-- a task that is started when its job has ended says so, and SIGTERM ends whoever waits for others. server_end.lua is what the tasks run.
local support = require "spec.support.init"
local ports = require "spec.support.ports"

local SCRIPT = support.root .. "spec/dist/server_end.lua"

-- Gives each task an address. Returns a function: the shell's command that runs a task, with its output in folder/task.
local function tasks_of(folder, names)
  local jobs = {}
  for _, name in ipairs(names) do
    local job = name:match "%a+"
    jobs[job] = jobs[job] or {}
    table.insert(jobs[job], ('"127.0.0.1:%d"'):format(ports.take(1)))
  end
  local lists = {}
  for job, addresses in pairs(jobs) do table.insert(lists, ('"%s":[%s]'):format(job, table.concat(addresses, ","))) end
  return function(name, environment)
    local job, index = name:match "(%a+):(%d+)"
    return ([[FLOW_THREADS=1 FLOWLUA_PATH='%slua' %s TF_CONFIG='{"cluster":{%s},"task":{"type":"%s","index":%s}}' \
      timeout --foreground -k 20 30 '%s' '%s' '%s' >'%s/%s' 2>&1]]):format(support.root, environment or "", table.concat(lists, ","), job,
      index, support.program, SCRIPT, folder, folder, name)
  end
end

local function run_shell(text)
  return support.run("bash " .. support.file("tasks.sh", text))
end

describe("when the chief has ended,", function()
  it("a worker that has reached only some of the servers ends, too, and nobody waits for it", function()
    local folder = support.folder()
    local start = tasks_of(folder, { "chief:0", "worker:0", "ps:0", "ps:1" })
    -- ps:1 is as good as gone from the beginning: the worker says hello to ps:0 and waits.
    local text = run_shell(start "ps:0" .. " & server=$!\n" .. start "worker:0" .. " & worker=$!\n" .. start("chief:0", "MEETS=worker:0")
      .. "; echo chief $?; wait $worker; echo worker $?; wait $server; echo server $?\n cat " .. folder .. "/*:*")
    assert.truthy(text:find("chief 0\nworker 0\nserver 0\n", 1, true), text)
    assert.truthy(text:find("ParameterServerStrategy: the chief has ended, and so does worker:0", 1, true), text)
    assert.truthy(text:find("ParameterServerStrategy: the chief has ended, and so does ps:0", 1, true), text)
  end)

  it("a worker that comes for the first time then is told so: servers wait for it", function()
    local folder = support.folder()
    local start = tasks_of(folder, { "chief:0", "worker:0", "ps:0" })
    local text = run_shell(start "ps:0" .. " & server=$!\n" .. start("chief:0", "MEETS=") .. "; echo chief $?\n" .. start "worker:0"
      .. "; echo worker $?; wait $server; echo server $?\n cat " .. folder .. "/*:*")
    assert.truthy(text:find("chief 0\nworker 0\nserver 0\n", 1, true), text)
    assert.truthy(text:find("ParameterServerStrategy: the chief has ended, and so does worker:0", 1, true), text)
  end)

  it("a worker that was lost before and is started again a second later is told so: servers wait for it", function()
    local folder = support.folder()
    local start = tasks_of(folder, { "chief:0", "worker:0", "ps:0" })
    local text = run_shell(start "ps:0" .. " & server=$!\n" .. start "worker:0" .. ([[ & worker=$!
      while [ ! -s '%s/connected' ]; do sleep 0.05; done; sleep 0.5
      kill -KILL $(cat '%s/connected'); wait $worker; echo worker $?
    ]]):format(folder, folder) .. start("chief:0", "MEETS=") .. "; echo chief $?; sleep 1\n" .. start "worker:0"
      .. "; echo again $?; wait $server; echo server $?\n cat " .. folder .. "/*:*")
    assert.truthy(text:find("worker 137\nchief 0\nagain 0\nserver 0\n", 1, true), text)
    assert.truthy(text:find("ParameterServerStrategy: the chief has ended, and so does worker:0", 1, true), text)
  end)
end)

describe("a task that is started when its job has ended", function()
  it("says who did not come, and ends: a parameter server", function()
    local folder = support.folder()
    local start = tasks_of(folder, { "chief:0", "worker:0", "ps:0" })
    local text = run_shell(start("ps:0", "FLOW_START_WITHIN=1") .. "; echo server $?\n cat " .. folder .. "/*:*")
    assert.truthy(text:find("server 1\n", 1, true), text)
    assert.truthy(text:find("ps:0: chief:0 127%.0%.0%.1:%d+ did not come within 1 s"), text)
  end)

  it("says who did not come, and ends: a worker", function()
    local folder = support.folder()
    local start = tasks_of(folder, { "chief:0", "worker:0", "ps:0" })
    local text = run_shell(start("worker:0", "FLOW_START_WITHIN=1") .. "; echo worker $?\n cat " .. folder .. "/*:*")
    assert.truthy(text:find("worker 1\n", 1, true), text)
    assert.truthy(text:find("a parameter server did not come within 1 s (is it running", 1, true), text)
    assert.truthy(text:find("ps:0 127%.0%.0%.1:%d+: Connection refused"), text)
  end)
end)

describe("SIGTERM ends a task", function()
  for what, case in pairs {
    ["that waits for a server"] = { {}, "worker:0", "began" }, ["that serves"] = { {}, "ps:0", "began" },
    ["that waits for what the chief will hand out"] = { { "ps:0" }, "worker:0", "connected" },
  } do
    local others, victim, file = unpack(case)
    it(what .. ", with 143", function()
      local folder = support.folder()
      local start, script = tasks_of(folder, { "worker:0", "chief:0", "ps:0" }), "others=\n"
      for _, other in ipairs(others) do script = script .. start(other) .. " & others=$!\n" end
      -- A moment after the file is there it waits; timeout passes the signal on, in the foreground to the program alone, once.
      script = script .. start(victim) .. (" & victim=$!\nwhile [ ! -s '%s/%s' ]; do sleep 0.05; done; sleep 0.5\n"):format(folder, file)
        .. "kill -TERM $victim; wait $victim; echo victim $?; [ -n \"$others\" ] && kill $others; wait; cat " .. folder .. "/*:*"
      local text = run_shell(script)
      assert.truthy(text:find("victim 143\n", 1, true), text)
      assert.truthy(text:find("flowlua: ended by SIGTERM", 1, true), text)
    end)
  end
end)
