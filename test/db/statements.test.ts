import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { splitStatements } from '../../src/platform/db/statements.ts'

describe('splitting an SQL file into statements', () => {
  it.each([
    ['select 1;\nselect 2;\n', ['select 1;', 'select 2;']],
    ['select 1; select 2', ['select 1;', 'select 2']],
    ['-- first; of all\nselect 1; -- done; now\n-- the end;\n', ['-- first; of all\nselect 1;']],
    [`select ';', 'it''s; ', ";";select 2;`, [`select ';', 'it''s; ', ";";`, 'select 2;']],
    ['do $$ begin; end $$;\nselect 1;', ['do $$ begin; end $$;', 'select 1;']],
    ['do $a$ select $$;$$; $a$;select 1;', ['do $a$ select $$;$$; $a$;', 'select 1;']],
    [`select $$it's;$$; -- don't;\nselect 2;`, [`select $$it's;$$;`, `-- don't;\nselect 2;`]],
    ['', []],
    ['-- nothing\n', []],
  ])('splits an SQL file at semicolons outside comments, strings, names and dollar quotes: %j', (sql, statements) => {
    expect(splitStatements(sql)).toEqual(statements)
  })

  it.each([
    [`select 1 /* one; */;`, 'write comments with --'],
    [`select e'it\\'s; ';`, 'write strings as'],
    [`select E'\\';`, 'write strings as'],
  ])('rejects an SQL file if the end of a statement is uncertain: %s', (sql, fault) => {
    expect(() => splitStatements(sql)).toThrow(fault)
  })

  it.each([`select '/* no comment */';`, `select 'done'';';`, "-- /* e'\nselect 1;", `select type'x';`])(
    'accepts SQL text that only looks like a block comment or an escape string: %s',
    (sql) => expect(splitStatements(sql)).toEqual([sql]),
  )

  it('returns all statements of an SQL file, in order', () => {
    const piece = fc.constantFrom(`'a;b'`, '$$x;\ny$$', '$f$ $$;$$ $f$', '"n;m"', '1', '-- c;\n', 'from t', `''`, '\n')
    const statement = fc.array(piece, { minLength: 1, maxLength: 8 }).map((pieces) => `select ${pieces.join(' ')}\n;`)
    fc.assert(
      fc.property(fc.array(statement, { maxLength: 6 }), (statements) => {
        expect(splitStatements(statements.join('\n'))).toEqual(statements)
      }),
    )
  })
})
