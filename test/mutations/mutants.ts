import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

/**
 * One change of one place in src. `before` and `after` are whole lines, so that a mutant also applies to a later
 * version.
 */
export type Mutant = { file: string; line: number; operator: string; before: string; after: string }

const SWAPS = new Map<ts.SyntaxKind, [operator: string, text: string]>([
  [ts.SyntaxKind.LessThanToken, ['comparison', '<=']],
  [ts.SyntaxKind.LessThanEqualsToken, ['comparison', '<']],
  [ts.SyntaxKind.GreaterThanToken, ['comparison', '>=']],
  [ts.SyntaxKind.GreaterThanEqualsToken, ['comparison', '>']],
  [ts.SyntaxKind.EqualsEqualsEqualsToken, ['equality', '!==']],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken, ['equality', '===']],
  [ts.SyntaxKind.AmpersandAmpersandToken, ['logic', '||']],
  [ts.SyntaxKind.BarBarToken, ['logic', '&&']],
  [ts.SyntaxKind.QuestionQuestionToken, ['logic', '&&']],
  [ts.SyntaxKind.PlusToken, ['arithmetic', '-']],
  [ts.SyntaxKind.MinusToken, ['arithmetic', '+']],
  [ts.SyntaxKind.AsteriskToken, ['arithmetic', '/']],
])

/** SQL keywords, each replaced at its first occurrence in a line of a statement. */
const SQL_SWAPS: [from: RegExp, to: string][] = [
  [/ and /, ' or '],
  [/ or /, ' and '],
  [/ <= /, ' < '],
  [/ >= /, ' > '],
  [/ < /, ' <= '],
  [/ > /, ' >= '],
  [/ = (?=\$|[a-z])/, ' <> '],
  [/ is null/, ' is not null'],
  [/ is not null/, ' is null'],
  [/\bnot exists\b/, 'exists'],
  [/\bleft join\b/, 'join'],
  [/\bdesc\b/, 'asc'],
  [/\bfor update\b/, ''],
  [/\bmin\(/, 'max('],
  [/\bmax\(/, 'min('],
  [/\bunion all\b/, 'union'],
]
const IS_SQL = /\b(select|insert into|update|delete from|with)\b[\s\S]*\b(from|values|set|select|returning)\b/

/** Returns every mutant of a file, in the order of the text. */
export function mutantsOf(root: string, file: string): Mutant[] {
  const text = readFileSync(join(root, file), 'utf8')
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const lines = text.split('\n')
  const mutants: Mutant[] = []

  function add(operator: string, start: number, end: number, replacement: string) {
    const { line, character } = source.getLineAndCharacterOfPosition(start)
    const last = source.getLineAndCharacterOfPosition(end)
    if (last.line !== line) return
    const before = lines[line] as string
    const after = before.slice(0, character) + replacement + before.slice(last.character)
    if (after !== before) mutants.push({ file, line: line + 1, operator, before, after })
  }

  function addOfSql(start: number, sql: string) {
    let offset = start
    for (const line of sql.split('\n')) {
      for (const [from, to] of SQL_SWAPS) {
        const match = from.exec(line)
        if (match) add('SQL', offset + match.index, offset + match.index + match[0].length, to)
      }
      offset += line.length + 1
    }
  }

  function visit(node: ts.Node) {
    if (ts.isImportDeclaration(node) || ts.isTypeAliasDeclaration(node) || ts.isInterfaceDeclaration(node)) return
    if (ts.isBinaryExpression(node)) {
      const swap = SWAPS.get(node.operatorToken.kind)
      if (swap) add(swap[0], node.operatorToken.getStart(), node.operatorToken.getEnd(), swap[1])
    }
    if (node.kind === ts.SyntaxKind.TrueKeyword && !ts.isLiteralTypeNode(node.parent))
      add('boolean', node.getStart(), node.getEnd(), 'false')
    if (node.kind === ts.SyntaxKind.FalseKeyword && !ts.isLiteralTypeNode(node.parent))
      add('boolean', node.getStart(), node.getEnd(), 'true')
    if (ts.isNumericLiteral(node) && !ts.isLiteralTypeNode(node.parent))
      add('number', node.getStart(), node.getEnd(), `(${node.getText()} + 1)`)
    if (ts.isIfStatement(node)) {
      add('condition', node.expression.getStart(), node.expression.getEnd(), 'true')
      add('condition', node.expression.getStart(), node.expression.getEnd(), 'false')
    }
    if (ts.isExpressionStatement(node) && /^(await |void )?[\w.]+\(/.test(node.getText()))
      add('statement', node.getStart(), node.getEnd(), '')
    if (ts.isTemplateExpression(node) || ts.isNoSubstitutionTemplateLiteral(node)) {
      if (IS_SQL.test(node.getText())) addOfSql(node.getStart(), node.getText())
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return mutants
}
