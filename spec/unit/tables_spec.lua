-- tables_spec.lua: load_csv: columns, dtypes and what is said about tables that do not fit.
local support = require "spec.support.init"
local flow = require "flow"
local load_csv = require "flow.data.tables"
local message_of = support.message_of

local function fails(part, ...)
  local arguments = { ... }
  local text = message_of(function() load_csv(unpack(arguments)) end)
  assert.truthy(text:find(part, 1, true), text)
end

describe("load_csv", function()
  local people = support.file("people.csv", 'name,age,weight\n"Ann, A.",31,1.5\nBob,4,\n')

  it("gives columns by name", function()
    local columns, names = load_csv(people)
    assert.same({ "name", "age", "weight" }, names)
    assert.same({ "Ann, A.", "Bob" }, columns.name)
    assert.same({ "int64", { 31, 4 } }, { columns.age.dtype, columns.age:totable() })
    assert.equal("float32", columns.weight.dtype)
    assert.is_true(columns.weight[1]:item() == 1.5 and columns.weight[2]:item() ~= columns.weight[2]:item())
  end)

  it("gives those that are asked for, in the dtypes that are asked for", function()
    local columns, names = load_csv(people, { columns = { "age" }, dtypes = { age = "uint8" } })
    assert.same({ "age" }, names)
    assert.equal("uint8", columns.age.dtype)
    assert.is_nil(columns.name)
    assert.same({ "31", "4" }, load_csv(people, { dtypes = "string" }).age)
  end)

  it("reads tables without a header and with another delimiter", function()
    local path = support.file("numbers.txt", "1;2\n3;4\n")
    local columns = load_csv(path, { header = false, delimiter = ";", dtypes = "float64" })
    assert.same({ { 1, 3 }, { 2, 4 } }, { columns[1]:totable(), columns[2]:totable() })
    assert.same({ 2, 4 }, load_csv(path, { header = false, delimiter = ";", columns = { "a", "b" } }).b:totable())
    fails("has 2 columns, columns names 1", path, { header = false, delimiter = ";", columns = { "a" } })
  end)

  it("names what does not fit", function()
    fails('line 2, column "name": "Ann, A." is not float32', people, { dtypes = "float32" })
    fails('line 1, column 1: "name" is not float32', people, { header = false, dtypes = "float32" })
    fails('has no column "agee"; did you mean "age"?', people, { columns = { "agee" } })
    fails('has no column "x"', people, { dtypes = { x = "int32" } })
    fails('unknown option "sep"', people, { sep = ";" })
    fails('two columns "a": 1 and 2', support.file("twice.csv", "a,a\n1,2\n"))
    fails("line 3: 1 field, the first line has 2", support.file("short.csv", "a,b\n1,2\n3\n"))
    fails("No such file", people .. ".none")
  end)

  -- Threads divide the rows of a long column: all arrive, and the first wrong one is named.
  it("reads long tables", function()
    local lines, rows = { "whole,mixed,holes,text" }, 40000
    for i = 1, rows do
      lines[#lines + 1] = ("%d,%s,%s,%s"):format(i, i == rows and "0.5" or i, i % 1000 == 0 and "" or i, i == 30000 and "x" or i)
    end
    local path = support.file("long.csv", table.concat(lines, "\n"))
    local columns = load_csv(path)
    assert.same({ "int64", "float32", "float32", "table" },
      { columns.whole.dtype, columns.mixed.dtype, columns.holes.dtype, type(columns.text) })
    assert.equal(rows * (rows + 1) / 2, columns.whole:sum():item())
    assert.is_true(columns.whole:eq(flow.arange(1, rows + 1):to "int64"):all():item())
    assert.equal(0.5, columns.mixed[-1]:item())
    assert.equal(rows / 1000, flow.isnan(columns.holes):to("int32"):sum():item())
    for _, dtype in ipairs { "int32", "float32", "float64", "int64" } do
      assert.equal(12345, load_csv(path, { columns = { "whole" }, dtypes = dtype }).whole[12345]:to("float64"):item())
    end
    fails('line 30001, column "text": "x" is not float32', path, { dtypes = "float32" })
    fails('line 257, column "whole": "256" is not uint8', path, { dtypes = { whole = "uint8" } })
  end)
end)
