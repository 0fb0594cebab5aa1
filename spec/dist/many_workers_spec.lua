-- many_workers_spec.lua: many workers on one machine: what they open to find each other does not grow with their square.
local support = require "spec.support.init"

local SCRIPT = [[
  local flow = require "flow"
  local strategy = flow.distribute.MultiWorkerMirroredStrategy()
  local sum, sockets = strategy:reduce("SUM", flow.tensor { 1 }):item(), 0
  for link in io.popen("ls -l /proc/$PPID/fd"):lines() do if link:find "socket:" then sockets = sockets + 1 end end
  print(("sum %d sockets %d"):format(sum, sockets))
  strategy:reduce("SUM", flow.tensor { 1 })        -- nobody leaves before all have counted
]]

-- What each worker says: { [task] = { sum, sockets } }.
local function run(environment, workers)
  local output, code = support.run(("%s FLOWLUA_PATH=%slua timeout -k 5 60 %s launch --workers %d --threads 1 %s </dev/null"):format(
    environment, support.root, support.program, workers, support.file("task.lua", SCRIPT)))
  assert.equal(0, code, output)
  local said, count = {}, 0
  for task, sum, sockets in output:gmatch "%[worker:(%d+)%] sum (%d+) sockets (%d+)" do
    said[tonumber(task)] = { sum = tonumber(sum), sockets = tonumber(sockets) }
    count = count + 1
  end
  assert.equal(workers, count, output)
  return said, output
end

describe("many workers on one machine", function()
  it("connect to the chief only, and add up in memory that they share", function()
    local workers = 12
    local said, output = run("", workers)
    for task = 1, workers - 1 do
      assert.equal(workers, said[task].sum, output)
      assert.is_true(said[task].sockets <= said[1].sockets and said[1].sockets <= 4, output)     -- its address, the chief, what it inherits
    end
    assert.equal(said[1].sockets + workers - 2, said[0].sockets, output)
    assert.truthy(output:find("communication = AUTO (shared memory)", 1, true), output)
  end)

  it("read the modules once, which a launcher has translated, and name their files all the same", function()
    local folder = support.folder()
    assert.equal(0, os.execute(("cp -r %slua/flow %s"):format(support.root, folder)))
    local script = support.file("task.lua", ([[
      os.execute "find %s/flow -mindepth 2 -name '*.lua' -delete"
      local flow, modules = require "flow", 0
      for link in io.popen("ls -l /proc/$PPID/fd"):lines() do if link:find "flow_modules" then modules = modules + 1 end end
      print("left", os.getenv "FLOW_MODULES", modules)
      local x = flow.Sequential { flow.layers.Dense(2, { input_shape = { 3 } }) }(flow.ones { 1, 3 })
      print("shape", table.concat(x.shape, "x"))
      print(select(2, pcall(function() flow.layers.Dense("many") end)))
      local trace = select(2, xpcall(function() flow.layers.Dense("many") end, debug.traceback))
      print((trace:match "%%S+/flow/errors.lua:%%d+: in"))]])
      :format(folder))
    local output, code = support.run(("FLOWLUA_PATH=%s timeout -k 5 60 %s launch --workers 8 --threads 1 %s"):format(folder,
      support.program, script))
    assert.equal(0, code, output)
    local function count(text) return select(2, output:gsub(text, "")) end
    assert.equal(8, count "left\tnil\t0\n", output)
    assert.equal(8, count "shape\t1x2\n", output)
    assert.equal(8, count "task.lua:7: Dense: ", output)
    local known = folder:match "[^/]+/[^/]+$"      -- of a long path, Lua names the end
    assert.equal(8, count(("] %%S*%s/flow/errors.lua:%%d+: in\n"):format(known)), output)
    os.execute("rm -r " .. folder)
  end)

  it("read files where FLOW_MODULES names nothing that a launcher has made", function()
    for _, told in ipairs { "0", "7", "999", "none", "-1" } do
      local output, code = support.run(("FLOW_MODULES=%s FLOWLUA_PATH=%slua %s -e 'print(os.getenv \"FLOW_MODULES\", "
        .. "flow.ones { 2 }:sum():item())' 7<%s"):format(told, support.root, support.program, support.program))
      assert.equal("nil\t2\n", output)
      assert.equal(0, code)
    end
  end)

  it("connect each with each where they may not share memory", function()
    local workers = 4
    local said, output = run("FLOW_SHARED_MEMORY=0", workers)
    for task = 1, workers - 1 do
      assert.equal(workers, said[task].sum, output)
      assert.is_true(said[task].sockets >= workers - 1 + 2, output)
    end
    assert.truthy(output:find("communication = AUTO (tcp)", 1, true), output)
  end)
end)

describe("the launcher of many tasks", function()
  local function launch(limit, workers)
    return support.run(("ulimit %s; timeout -k 5 60 env %s launch --workers %d %s"):format(limit, support.command, workers,
      support.file("task.lua", "print('limit ' .. io.popen('ulimit -n'):read('*a'))")))
  end

  it("takes as many descriptors as the system allows, and leaves its tasks the limit that it has found", function()
    local output, code = launch("-Sn 20", 8)
    assert.equal(0, code, output)
    assert.equal(8, support.count(output, "] limit 20\n"), output)
  end)

  it("says how many it lacks", function()
    local output, code = launch("-n 1200", 1000)
    assert.equal(1, code, output)
    local wanted = "flowlua launch: 1000 tasks take %d+ file descriptors here, and this process may have 1200 %(ulimit %-Hn%): start fewer"
    assert.truthy(output:find(wanted), output)
  end)
end)
