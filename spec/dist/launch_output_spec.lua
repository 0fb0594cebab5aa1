-- launch_output_spec.lua: what flowlua launch shows: a table below the lines on a terminal, JSON where it is asked for, lines else.
local json = require "flow.json"
local support = require "spec.support.init"
local terminal = require "spec.support.terminal"

-- worker:1 is killed once; the others wait until it is back.
local KILLED_ONCE = [[
  io.stdout:setvbuf("no")
  local name = os.getenv("TF_CONFIG"):match '"type":"(%a+)"' .. os.getenv("TF_CONFIG"):match '"index":(%d)'
  print("hello from " .. name)
  local again = io.open "again"
  if name == "worker1" and not again then
    io.open("again", "w"):close()
    os.execute "kill -9 $PPID"
  end
  if name == "worker1" then io.open("back", "w"):close() end
  for i = 1, 400 do
    if io.open "back" then break end
    os.execute "sleep 0.05"
  end
  io.stderr:write("a warning of ", name, "\n")]]

-- A script in its own folder.
local function place(script)
  local path = support.file("task.lua", script)
  return path:match("^(.*)/"), path
end

local function launch(options, script)
  local folder = place(script)
  return support.run(("cd %s; timeout -k 5 60 env %s launch %s task.lua"):format(folder, support.command, options))
end

-- The events of an output, and those of one role.
local function events_of(text, role, index)
  local list = {}
  for line in text:gmatch("[^\n]+") do
    local event = json.decode(line)
    if not role or event.role == role and event.index == index then list[#list + 1] = event end
  end
  return list
end

local function brief(events, field)
  local list = {}
  for i, event in ipairs(events) do list[i] = event.event .. " " .. tostring(event[field]) end
  return table.concat(list, ", ")
end

-- What a terminal shows in the end.
local function screen_of(text)
  local rows, at = { "" }, 1
  text = text:gsub("\27%[[%d;]*m", ""):gsub("\27%].-\7", ""):gsub("\r\n", "\n")
  while text ~= "" do
    local up, rest = text:match("^\27%[(%d+)A\r\27%[J(.*)$")
    if up then
      at = at - tonumber(up)
      assert(at >= 1, "the cursor is above the first row")
      for i = #rows, at, -1 do rows[i] = nil end
      rows[at], text = "", rest
    else
      local character = text:sub(1, 1)
      assert(character ~= "\27", text)
      if character == "\n" then
        at = at + 1
        rows[at] = ""
      else
        rows[at] = rows[at] .. character
      end
      text = text:sub(2)
    end
  end
  return rows
end

-- Runs a launch on a terminal; returns the rows of its screen, what came, and the exit code.
local function on_terminal(options, script, environment, columns, rows)
  local folder, path = place(script)
  environment = environment or {}
  environment.TERM = environment.TERM or "xterm"
  local command = ("cd %s; exec env %s launch %s %s"):format(folder, support.command, options, path)
  local opened = terminal.open({ "timeout", "-k", "5", "60", "sh", "-c", command }, environment, columns, rows)
  local _, code = opened:finish()
  return screen_of(opened.text), opened.text, code
end

-- The rows of the table: those from the head on.
local function table_of(rows)
  local list = {}
  for i, row in ipairs(rows) do
    if row:find("^Role +State") then list = {} end
    if i < #rows then list[#list + 1] = (row:gsub(" +$", "")) end
  end
  return list
end

describe("what flowlua launch shows", function()
  it("JSON has the lives of the tasks, their lines and the end", function()
    local output, code = launch("--workers 2 --max-restarts 2 --output json 2>errors", KILLED_ONCE)
    assert.equal(0, code, output)
    local second = events_of(output, "worker", 1)
    assert.equal("started running, line running, exited restarting, restarted running, line running, line running, exited done",
      brief(second, "state"))
    assert.equal("SIGKILL", second[3].signal)
    assert.is_nil(second[3].status)
    assert.equal(0, second[7].status)
    assert.equal("hello from worker1", second[3].line)
    assert.equal("stdout", second[2].stream)
    assert.equal("stderr", second[6].stream)
    assert.equal("a warning of worker1", second[6].line)
    assert.is_true(second[1].pid > 0 and second[4].pid > 0 and second[1].pid ~= second[4].pid)
    local restarts, all = {}, events_of(output)
    for i, event in ipairs(second) do restarts[i] = event.restarts end
    assert.same({ 0, 0, 0, 1, 1, 1, 1 }, restarts)
    local last, messages = all[#all], 0
    assert.equal("finished done 0 1", ("%s %s %d %d"):format(last.event, last.state, last.status, last.restarts))
    for i, event in ipairs(all) do
      for _, key in ipairs { "time", "event", "role", "index", "pid", "state", "restarts", "line" } do
        assert.is_not_nil(event[key], key .. " of " .. event.event)
      end
      if event.event == "message" then messages = messages + 1 end
      assert.is_true(i == 1 or event.time >= all[i - 1].time)
    end
    assert.equal(1, messages)
    assert.truthy(output:find('"event":"message","role":null,"index":null,"pid":null,"state":"running","restarts":0,'
      .. '"line":"flowlua launch: worker:1 was killed by SIGKILL; it starts again %(1 of 2%)"'))
  end)

  it("a failure is in it, with its status, and whom the launcher has ended", function()
    local output, code = launch("--workers 2 --kill-after 0.2 --output json", [[
      if os.getenv("TF_CONFIG"):find '"index":1' then os.exit(3) end
      os.execute "sleep 60"]])
    assert.equal(3, code, output)
    local first, second = events_of(output, "worker", 0), events_of(output, "worker", 1)
    assert.equal("exited failed", brief({ second[#second] }, "state"))
    assert.equal(3, second[#second].status)
    assert.equal("exited ended", brief({ first[#first] }, "state"))
    assert.truthy(output:find '"finished","role":null,"index":null,"pid":null,"state":"failed","restarts":0,"status":3,"line":null}\n$')
  end)

  it("whatever bytes a line has, its object is JSON", function()
    local output, code = launch("--workers 1 --output json", [[
      io.write("quote \" backslash \\ tab \t bell \7 latin \228 cut \226\130 long \240\144\128 ")
      io.write("surrogate \237\160\128 overlong \192\175 euro \226\130\172\n")
      io.write("\n", ("x"):rep(100000), "\nno end")]])
    assert.equal(0, code)
    local lines = {}
    for _, event in ipairs(events_of(output, "worker", 0)) do
      if event.event == "line" then lines[#lines + 1] = event.line end
    end
    local unknown = "\239\191\189"
    assert.equal(("quote \" backslash \\ tab \t bell \7 latin %s cut %s long %s surrogate %s overlong %s euro \226\130\172"):format(unknown,
      unknown:rep(2), unknown:rep(3), unknown:rep(3), unknown:rep(2)), lines[1])
    assert.equal("", lines[2])
    assert.equal(("x"):rep(100000), lines[3])
    assert.equal("no end", lines[4])
  end)

  it("a terminal has the lines, and below them a table that stays", function()
    local rows, text, code = on_terminal("--workers 2 --max-restarts 1", KILLED_ONCE, nil, 60, 24)
    assert.equal(0, code, text)
    local found = table_of(rows)
    assert.same({ "Role      State       Restarts  Last line",
                  "worker:0  done        0         a warning of worker0",
                  "worker:1  done        1         a warning of worker1" }, found)
    local shown = table.concat(rows, "\n")
    for _, line in ipairs { "%[worker:0%] hello from worker0", "%[worker:1%] hello from worker1", "%[worker:1%] a warning of worker1",
                            "flowlua launch: worker:1 was killed by SIGKILL; it starts again %(1 of 1%)" } do
      assert.truthy(shown:find(line), line .. "\n" .. shown)
    end
    assert.equal(2, support.count(shown, "hello from worker1"))
    assert.truthy(text:find "worker:1\27%[0m  \27%[3[23]m%a+\27%[0m", "no colour of a state")
    assert.truthy(text:find "\27%[3A\r\27%[J", "not drawn again in place")
  end)

  it("a failed task keeps its reason; NO_COLOR takes colours, not the table; narrow terminals cut it", function()
    local script = [[
      print(("a long line "):rep(20))
      io.stdout:flush()
      if os.getenv("TF_CONFIG"):find '"index":1' then os.exit(3) end
      os.execute "sleep 60"]]
    local rows, text, code = on_terminal("--workers 2 --kill-after 0.1", script, { NO_COLOR = "1" }, 44, 24)
    assert.equal(3, code)
    assert.is_nil(text:find "\27%[%d*m")
    local found = table_of(rows)
    assert.equal("Role      State          Restarts  Last line", found[1] .. "e")
    assert.truthy(found[2]:find "^worker:0  ended          0         ")
    assert.equal("worker:1  exited with 3  0         a long l", found[3])
    for _, row in ipairs(found) do assert.is_true(#row <= 43, row) end
  end)

  it("control sequences of a task stay out of the table, and wide characters count twice", function()
    local rows = on_terminal("--workers 1", [[io.write("\27[31mred\27[0m\ttab \27]0;title\7\228\184\173\230\150\135 end\n")]], nil, 43, 24)
    local found = table_of(rows)
    assert.equal("worker:0  done        0         red tab \228\184\173", found[2])
  end)

  it("a terminal with fewer rows than tasks has the number of the others", function()
    local rows = on_terminal("--workers 6", "print 'here'", nil, 60, 6)
    local found = table_of(rows)
    assert.equal(5, #found)
    assert.truthy(found[4]:find "^worker:2 ")
    assert.equal("and 3 more: 3 done", found[5])
  end)

  it("Ctrl-C and a dumb terminal: the table stays whole, or is not there", function()
    local _, text, code = on_terminal("--workers 1", "print 'here'", { TERM = "dumb" }, 60, 24)
    assert.equal(0, code)
    assert.equal("[worker:0] here\n", (text:gsub("\r", "")))
    -- Until a forked shell runs, Ctrl-C ends what it was forked from alone, and the sleep would begin after it.
    local folder, path = place "io.stdout:setvbuf('no') local p = io.popen('echo; exec sleep 60') p:read() print 'ready' p:read()"
    local opened = terminal.open({ "sh", "-c", ("cd %s; exec env %s launch --workers 2 %s"):format(folder, support.command, path) },
      { TERM = "xterm" }, 60, 24)
    opened:wait "worker:0  running[^\n]*ready *\nworker:1  running[^\n]*ready"      -- both in one table
    opened:send "\3"
    local _, ended = opened:finish()
    assert.equal(130, ended)
    local last = opened.text:match(".*Role.-\n(.*)$"):gsub("\27%[[%d;]*m", ""):gsub("\r", "")
    assert.truthy(last:find "^worker:0  ended .*\nworker:1  ended .*\n$", last)
  end)

  it("lines go where they went: a pipe has them, and a table needs a terminal", function()
    local output, code = launch("--workers 1 2>&1", "print 'here'")
    assert.equal("[worker:0] here\n", output)
    assert.equal(0, code)
    output, code = launch("--workers 1 --output table 2>&1", "print 'here'")
    assert.equal("flowlua launch: --output table: standard output is not a terminal\n", output)
    assert.equal(1, code)
    output, code = launch("--workers 1 --output yaml 2>&1", "print 'here'")
    assert.equal('flowlua launch: --output is lines, table or json, got "yaml"\n', output)
    assert.equal(1, code)
  end)

  it("the ranks of mpirun have their own rows and events", function()
    if not support.run("command -v mpirun"):find "mpirun" then return pending "mpirun is not installed" end
    local output, code = launch("--engine mpi --workers 2 --output json", "print(os.getenv 'OMPI_COMM_WORLD_RANK')")
    assert.equal(0, code, output)
    assert.equal("started running, line running, exited done", brief(events_of(output, "worker", 1), "state"))
    assert.equal("1", events_of(output, "worker", 1)[2].line)
    local rows = on_terminal("--engine mpi --workers 2", "print(os.getenv 'OMPI_COMM_WORLD_RANK')", nil, 60, 24)
    local found = table_of(rows)
    assert.same({ "worker:0  done        0         0", "worker:1  done        0         1" }, { found[2], found[3] })
  end)
end)
