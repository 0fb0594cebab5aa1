-- cli_help_spec.lua: what the program says of itself: flowlua help, --help of every command, unknown options, misspelt commands, and what
-- is made from the records of public functions: the manual page, completion of shells, annotations for editors.
local support = require "spec.support.init"
local flow = require "flow"

local program, run = support.command, support.run
local _ = flow.help
local reference = require "flow.reference"
local all = reference.all()

-- Commands by what flowlua --help names.
local function commands()
  local list, seen = {}, {}
  for name in run(program .. " --help"):gmatch("\n  flowlua (%l+) ") do
    if not seen[name] then list[#list + 1], seen[name] = name, true end
  end
  return list
end

describe("every command", function()
  local list = commands()

  it("stands in flowlua --help", function()
    table.sort(list)
    assert.same({ "bench", "board", "doctor", "help", "jobs", "launch", "predict", "scaling", "submit", "summary" }, list)
  end)

  for _, name in ipairs(list) do
    it(name .. " has --help", function()
      local output, code = run(program .. " " .. name .. " --help")
      assert.truthy(output:find("^Usage: flowlua " .. name), output)
      assert.equal(0, code)
    end)

    it(name .. " refuses an option that it does not know, by its name, in one line", function()
      local output, code = run(program .. " " .. name .. " --no-such-option")
      assert.truthy(output:find("^flowlua[^\n]*unknown option %-%-no%-such%-option[^\n]*\n$"), output)
      assert.equal(1, code)
    end)
  end
end)

describe("flowlua help", function()
  it("shows pages and lists, and says in one line what it does not know", function()
    assert.truthy(run(program .. " help Dense"):find("^flow.layers.Dense%(units"))
    assert.truthy(run(program .. " help model:fit zeros"):find("\nflow.zeros%(shape%.%.%."))
    assert.truthy(run(program .. " help layers"):find("^flow.layers: Activation"))
    local output, code = run(program .. " help Dnse")
    assert.equal('flowlua: there is no help for "Dnse"; did you mean "Dense"?\n', output)
    assert.equal(1, code)
  end)

  it("makes annotations that Lua reads, of every public name", function()
    local text = run(program .. " help --annotations -")
    assert.truthy(loadstring(text))
    local missing = {}
    for _, item in ipairs(all) do
      for _, name in ipairs(item.names) do
        local method = name == item.name and (name:find("^flow%.") or name:find("^%l+:")) and not name:find("^symbolic:")
        local called = method and item.f and not (item.kind == "class" and text:find("\n" .. name .. " = {}", 1, true))
        if called and not text:find("\nfunction " .. name .. "(", 1, true) then missing[#missing + 1] = name end
      end
      local class, own = item.name:match("^(%u%w*)%.([%w_]+)$")
      local owner, field = item.name:match("^(%l+)%.([%w_]+)$")
      if class and not text:find(("\nfunction flow%%.[%%w.]*%s%%.%s%%("):format(class, own)) then missing[#missing + 1] = item.name end
      if item.kind == "constant" and not text:find("\n" .. item.name .. " = nil\n", 1, true) then missing[#missing + 1] = item.name end
      if item.kind == "field" and not text:find(("\n---@class flow%%.%s\n[^\n]*.-%%-%%-%%-@field %s any "):format(owner, field)) then
        missing[#missing + 1] = item.name
      end
    end
    assert.equal("", table.concat(missing, " "))
    assert.truthy(text:find("---@return flow.dataset\nfunction flow.data.Dataset.range(start, stop, step, options) end\n", 1, true))
    assert.truthy(text:find("---@param keepdims? boolean\n---@return flow.tensor\nfunction tensor:sum(axis, keepdims) end", 1, true))
  end)

  it("makes completions for shells, whose options are those of the commands", function()
    local script = support.file("complete.sh", run(program .. " help --completion bash"))
    local words = run(("bash -c 'source %s; COMP_WORDS=(flowlua su); COMP_CWORD=1; _flowlua; echo ${COMPREPLY[@]}; "
      .. "COMP_WORDS=(flowlua help flow.layers.Den); COMP_CWORD=2; _flowlua; echo ${COMPREPLY[@]}'"):format(script))
    assert.equal("submit summary\nflow.layers.Dense\n", words)
    for command, options in run(program .. " help --completion fish"):gmatch("seen_subcommand_from (%l+)' %-a '([^']*)'") do
      local help = run(program .. " " .. command .. " --help")
      for option in options:gmatch("%-%-%l[%l-]*") do
        if option ~= "--help" then assert.truthy(help:find(option, 1, true), command .. " " .. option) end
      end
    end
    assert.truthy(run(program .. " help --completion zsh"):find("^#compdef flowlua"))
    assert.equal('flowlua: help: --completion is for bash, zsh or fish, got "tcsh"\n', (run(program .. " help --completion tcsh")))
  end)

  it("makes a manual page that names every public name", function()
    local text = run(program .. " help --man"):gsub("\\%-", "-")
    assert.truthy(text:find("^%.TH FLOWLUA 1\n"))
    for _, item in ipairs(all) do assert.truthy(text:find("\n.B " .. item.name, 1, true), item.name) end
  end)
end)

describe("the command line", function()
  it("says in one line what is not there", function()
    assert.equal("flowlua: cannot open dcotor: No such file or directory; did you mean the command doctor?\n", (run(program .. " dcotor")))
    local text = 'flowlua: module "no.mod" was not found: there is neither no/mod.lua nor no/mod/init.lua in this folder or in those '
      .. "of LUA_PATH\n"
    assert.equal(text, (run(program .. " -m no.mod")))
    assert.equal(text, (run(program .. " -l no.mod")))
    assert.equal("flowlua launch: cannot open nowhere.lua: there is no such file\n", (run(program .. " launch --workers 2 nowhere.lua")))
    assert.equal("flowlua: cannot open nowhere.keras: No such file or directory\n", (run(program .. " summary nowhere.keras")))
  end)

  it("shows the lines of the script that led to an error, and none of the library's", function()
    local script = support.file("bad.lua", [[
local flow = require "flow"
local function inner(x)
  local y = flow.matmul(x, x)
  return y
end
local function outer()
  local y = inner(flow.ones { 2, 3 })
  return y
end
outer()
]])
    local output = run(program .. " " .. script)
    assert.truthy(output:find("bad.lua:3: ", 1, true), output)
    local trace = output:match("\nstack traceback:\n(.*)$"):gsub("\t[^\n]*/", "\t")
    assert.equal("\tbad.lua:3: in function 'inner'\n\tbad.lua:7: in function 'outer'\n\tbad.lua:10: in main chunk\n", trace)
    local short = run(program .. " " .. support.file("short.lua", "flow.matmul(1)\n"))
    assert.falsy(short:find("stack traceback", 1, true), short)
  end)
end)
