-- program_edges_spec.lua: what the prompt, the program's commands, flow.keras and flow.applications do where something unusual comes.
local support = require "spec.support.init"
local flow = require "flow"

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return tostring(message)
end

describe("the prompt", function()
  it("goes on after a value that cannot be shown", function()
    local lines = { "edge_x = setmetatable({}, { __tostring = function() error('boom', 0) end })", "edge_x", "{ edge_x }", "1 + 1" }
    local said, at = {}, 0
    flow.repl(function()
      at = at + 1
      return lines[at]
    end, function(text) said[#said + 1] = text end)
    _G.edge_x = nil
    assert.equal(3, #said)
    assert.truthy(said[1]:find("boom", 1, true) and said[2]:find("boom", 1, true))
    assert.equal("2", said[3])
  end)
end)

describe("flowlua", function()
  local program = ("FLOWLUA_PATH=%slua %s"):format(support.root, support.program)

  it("predict takes outputs that are NaN, and models for pictures of any size", function()
    local folder = support.folder()
    local model = flow.Sequential { flow.layers.Input { -1, -1, 3 }, flow.layers.GlobalAveragePooling2D(), flow.layers.Dense(12) }
    local kernel = flow.zeros({ 3, 12 })
    kernel[{ {}, { 1, 11 } }] = 0 / 0
    model:set_weights { kernel, flow.zeros { 12 } }
    model:save(folder .. "/m.keras")
    flow.image.save(folder .. "/a.png", flow.full({ 4, 6, 3 }, 200))
    local output, code = support.run(("%s predict --top 2 %s/m.keras %s/a.png 2>&1"):format(program, folder, folder))
    assert.equal(0, code, output)
    assert.truthy(output:find("a.png: class 11 0, class 0 %-?nan\n"), output)
  end)

  it("knows how what it starts has ended where its caller ignores SIGCHLD", function()
    local ignoring = support.file("ignoring.lua", [[
      local ffi = require "ffi"
      ffi.cdef "void *signal(int, void *); int execvp(const char *, char *const *);"
      ffi.C.signal(17, ffi.cast("void *", 1))
      local list = ffi.new("char *[?]", #arg + 1)
      for i = 1, #arg do list[i - 1] = ffi.cast("char *", arg[i]) end
      ffi.C.execvp(arg[1], list)]])
    local under = ("FLOWLUA_PATH=%slua timeout -k 5 60 %s %s %s"):format(support.root, os.getenv "FLOW_LUA" or "luajit", ignoring,
      support.program)
    local output, code = support.run(([[%s -e 'print(os.execute "exit 3")']]):format(under))
    assert.equal(0, code, output)
    assert.equal("768\n", output)
    output, code = support.run(("%s --rank sh -c 'exit 3'"):format(under))
    assert.equal(3, code, output)
  end)

  it("writes nothing of what it prints into files, whichever standard descriptors are closed", function()
    local script = support.file("closed.lua", [[
      local flow = require "flow"
      flow.set_random_seed(1)
      local model = flow.Sequential { flow.layers.Input { 4 }, flow.layers.Dense(1) }
      model:compile { optimizer = "sgd", loss = "mse" }
      local file = io.open(arg[1] .. "/own", "w")
      local log = flow.callbacks.CSVLogger(arg[1] .. "/log")
      model:fit(flow.ones { 8, 4 }, flow.ones { 8, 1 }, { epochs = 2, verbose = 1, callbacks = { log } })
      print "printed"
      io.stderr:write "said"
      file:close()]])
    local rows
    for _, closed in ipairs { "", "<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-" } do
      local folder = support.folder()
      support.run(("%s %s %s %s"):format(program, script, folder, closed))
      assert.equal("", support.read(folder .. "/own"), closed)
      local log = support.read(folder .. "/log")
      rows = rows or log
      assert.truthy(log == rows and log:find "^epoch,loss,val_loss\r\n0,[%d.]+,NA\r\n1,[%d.]+,NA\r\n$", closed .. ": " .. log)
    end
  end)

  it("says that what was printed did not reach standard output, and ends with a failure", function()
    if support.run("test -c /dev/full && echo there") == "" then return pending "there is no /dev/full" end
    for options, expected in pairs { ["-e 'print(1)'"] = 1, ["-e 'print(1) os.exit(0)'"] = 1, ["-v"] = 1, ["doctor"] = 1,
      ["-e 'io.stdout:setvbuf(\"full\") print(1)'"] = 1, ["-e 'io.stderr:write(2)'"] = 0 } do
      local output, code = support.run(("%s %s 2>&1 > /dev/full"):format(program, options))
      assert.equal(expected, code, options)
      local said = output:find("flowlua: not all that was printed could be written to standard output", 1, true)
      assert.equal(expected == 1, said ~= nil, options)
    end
    local output = support.run(("%s -e 'print(1) error(2, 0)' 2>&1 > /dev/full"):format(program))
    assert.truthy(output:find("^flowlua: 2\n"), output)
  end)

  it("says what a script raised, whatever that is, and ends with 1", function()
    for _, case in ipairs {
      { 'setmetatable({}, { __tostring = function() error "x" end })', "an error that cannot be shown: table, whose __tostring fails" },
      { "setmetatable({}, { __tostring = function() return {} end })", "an error that cannot be shown: table, whose __tostring fails" },
      { 'setmetatable({}, { __tostring = function() return "own" end })', "own" },
      { "setmetatable({}, { __metatable = 5 })", "an error that is not text: table" },
      { "{}", "an error that is not text: table" }, { "nil", "nil" }, { "false", "false" }, { '"text", 0', "text" },
    } do
      local output, code = support.run(("%s %s"):format(program, support.file("raise.lua", "error(" .. case[1] .. ")")))
      assert.equal(1, code, case[1])
      assert.equal("flowlua: " .. case[2], output:match "^[^\n]*", case[1])
    end
  end)

  it("says what is wrong where no more files can be opened", function()
    local script = support.file("files.lua", [[
      local flow = require "flow"
      flow.save_npy(arg[1], flow.ones { 2 })      -- loads what that needs
      local kept = {}
      repeat kept[#kept + 1] = io.open "/dev/null" until #kept == 0 or not io.open "/dev/null"
      flow.save_npy(arg[1], flow.ones { 2 })]])
    local output, code = support.run(("bash -c 'ulimit -n 40; exec env %s %s %s/a.npy'"):format(program, script, support.folder()))
    assert.equal(1, code, output)
    assert.truthy(output:find "Too many open files", output)
  end)

  it("finds no part of a data set or of a pattern's files for the whole", function()
    local folder = support.folder()
    support.run(("mkdir -p %s/a/deep; echo text >%s/a/deep/x.txt"):format(folder, folder))
    local script = support.file("listing.lua", [[
      local flow, folder, kept = require "flow", arg[1], {}
      local function list() return #flow.text_dataset_from_directory(folder, { verbose = false }).file_paths end
      local function match() return #flow.io.glob(folder .. "/a/*/*") end
      local most = list() * 10 + match()
      repeat kept[#kept + 1] = io.open "/dev/null" until #kept == 0 or not io.open "/dev/null"
      for _ = 1, 4 do
        local listed, files = pcall(list)
        local matched, paths = pcall(match)
        if listed and matched then return print(most, files * 10 + paths) end
        print(listed and "" or files)
        print(matched and "" or paths)
        table.remove(kept):close()
      end]])
    local output = support.run(("bash -c 'ulimit -n 40; exec env %s %s %s'"):format(program, script, folder))
    assert.truthy(output:find("11\t11\n$"), output)
    assert.truthy(output:find("cannot list the directory " .. folder .. "/a/deep: Too many open files", 1, true), output)
    assert.truthy(output:find("cannot list the directory " .. folder .. "/a: Too many open files", 1, true), output)
  end)

  it("bench and scaling name what they do not take", function()
    local output, code = support.run(program .. " bench mlp 2>&1")
    assert.equal(1, code)
    assert.truthy(output:find('bench: unexpected argument "mlp"; a net is chosen by --net mlp', 1, true), output)
    output, code = support.run(program .. " scaling a.keras b.keras 2>&1")
    assert.equal(1, code)
    assert.truthy(output:find("scaling: one model at a time, got a.keras and b.keras", 1, true), output)
  end)
end)

describe("flow.keras.backend", function()
  it("counts names with those of layers, from the beginning after clear_session", function()
    local backend = flow.keras.backend
    backend.clear_session()
    assert.same({ 1, 2, 1 }, { backend.get_uid "block", backend.get_uid "block", backend.get_uid() })
    assert.equal("dense", flow.layers.Dense(1).name)
    assert.equal(2, backend.get_uid "dense")      -- keras.backend.get_uid("dense") after one Dense()
    backend.clear_session()
    assert.equal(1, backend.get_uid "block")
    backend.clear_session()
  end)
end)

describe("flow.applications", function()
  local applications = flow.applications

  it("name a wrong shape, and a missing file before they make layers", function()
    assert.truthy(message_of(applications.VGG16, { input_shape = { true, 5, 3 } }):find("got {true, 5, 3}", 1, true))
    flow.clear_session()
    assert.truthy(message_of(applications.MobileNet, { weights = "/nowhere/a.h5" }):find('there is no file "/nowhere/a.h5"', 1, true))
    assert.equal("conv2d", flow.layers.Conv2D(1, 1).name)
    assert.equal("re_lu", flow.layers.ReLU().name)
  end)

  it("decode lists, more classes than there are, and NaN", function()
    local pictures = require "flow.applications.pictures"
    local application = require "flow.applications.application"
    local folder, fetched = support.folder(), application.fetched
    local names = {}
    for i = 0, 999 do names[tostring(i)] = { "n" .. i, "name" .. i } end
    flow.io.write(folder .. "/index.json", require("flow.json").encode(names))
    application.fetched = function() return folder .. "/index.json" end
    local row = {}
    for i = 1, 1000 do row[i] = i % 7 == 0 and 0 / 0 or i end
    local ok, decoded = pcall(pictures.decode, "decode", { row }, 5000)
    application.fetched = fetched
    assert.is_true(ok, tostring(decoded))
    assert.equal(1000, #decoded[1])
    assert.equal("n993", decoded[1][1][1])      -- position 994 is the last one that 7 divides: numpy.argsort puts NaN at the end
    assert.equal("n999", decoded[1][143][1])
  end)
end)
