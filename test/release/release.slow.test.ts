import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { ROOT, runToEnd, TYPESCRIPT } from '../support/processes.ts'

const CHANGELOG = 'src/docs/guides/merchant/changelog.md'
const ENTRY = `| date | change |
|---|---|
| 1 January 2027 | Added a field. |

### Details

# is not a comment.`

const { version: CURRENT } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
const [major = 0, minor = 0, patch = 0] = CURRENT.split('.').map(Number)
const PATCH = `${major}.${minor}.${patch + 1}`

/** A repository with the files of a release, and an unreleased entry of `version` in its changelog. */
async function createRepository(version: string, entry = ENTRY) {
  const folder = mkdtempSync(join(tmpdir(), 'upi-payments-release-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  // Without the developer's configuration, which may sign commits.
  const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' }
  const run = (command: string, ...args: string[]) => runToEnd(command, args, { cwd: folder, env })
  const git = async (...args: string[]) => {
    const { code, stdout, stderr } = await run('git', ...args)
    if (code !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`)
    return stdout
  }
  const text = (path: string) => readFileSync(join(folder, path), 'utf8')
  const write = (path: string, content: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
  for (const file of ['package.json', 'package-lock.json', '.npmrc', 'Dockerfile'])
    cpSync(join(ROOT, file), join(folder, file))
  write(CHANGELOG, `# Changelog\n\n## ${version} (unreleased)\n\n${entry}\n\n## 0.9.0 (1 January 2026)\n\nFirst.\n`)
  await git('init', '--quiet', '--initial-branch', 'main')
  await git('config', 'user.name', 'Asha Rao')
  await git('config', 'user.email', 'asha@shop.example')
  await git('add', '.')
  await git('commit', '--quiet', '--message', 'files of a release')
  const release = (...args: string[]) => run(process.execPath, ...TYPESCRIPT, join(ROOT, 'src/dev/release.ts'), ...args)
  const state = async () => [
    await git('rev-parse', 'HEAD'),
    await git('tag'),
    await git('diff', 'HEAD'),
    await git('branch', '--show-current'),
  ]
  return { folder, git, release, run, state, text, write }
}

const versionsIn = ({ text }: { text: (path: string) => string }) => {
  const lock = JSON.parse(text('package-lock.json'))
  const [, label] = /image\.version="([^"]+)"/.exec(text('Dockerfile')) ?? []
  return [JSON.parse(text('package.json')).version, lock.version, lock.packages[''].version, label]
}

it.each([
  ['patch', PATCH],
  ['minor', `${major}.${minor + 1}.0`],
  ['major', `${major + 1}.0.0`],
  [PATCH, PATCH],
])(
  'npm run release -- %s writes the version to all files, dates the changelog, commits and tags',
  async (requested, version) => {
    const repository = await createRepository(version)
    const { git, release, text } = repository
    expect(await release(requested)).toMatchObject({ code: 0, stderr: '' })
    expect(versionsIn(repository)).toEqual(Array.from({ length: 4 }, () => version))
    expect(text('package-lock.json')).not.toContain('"resolved"')
    const [, heading, date] = new RegExp(`^(## ${version} \\((.+)\\))$`, 'm').exec(text(CHANGELOG)) ?? []
    expect(date).toMatch(/^\d{1,2} [A-Z][a-z]+ \d{4}$/)
    expect(text(CHANGELOG)).toBe(`# Changelog\n\n${heading}\n\n${ENTRY}\n\n## 0.9.0 (1 January 2026)\n\nFirst.\n`)
    expect(await git('status', '--porcelain')).toBe('')
    expect(await git('log', '--format=%s', '--max-count=1')).toBe(`release: ${version}\n`)
    const changed = (await git('show', '--format=', '--name-only')).trim().split('\n')
    expect(changed).toEqual(['Dockerfile', 'package-lock.json', 'package.json', CHANGELOG])
    expect(await git('cat-file', '-t', `v${version}`)).toBe('tag\n')
    expect(await git('rev-parse', `v${version}^{commit}`)).toBe(await git('rev-parse', 'HEAD'))
    expect(await git('tag', '--list', '--format=%(contents)')).toBe(`UPI payments ${version}\n\n${ENTRY}\n\n`)
  },
)

it('npm run release prints the commands that push the tag and build the image', async () => {
  const { git, release } = await createRepository(PATCH)
  const { stdout } = await release('patch')
  expect(stdout).toContain(`git push origin main v${PATCH}\n`)
  const commit = (await git('rev-parse', '--short', 'HEAD')).trim()
  expect(stdout.replaceAll(/\\\n\s*/g, '')).toContain(
    `docker build --build-arg COMMIT=${commit} --build-arg SOURCE=REPOSITORY --tag upi-payments:${PATCH} .\n`,
  )
})

it('npm run release releases the version in package.json once, although this version does not increase', async () => {
  const repository = await createRepository(CURRENT)
  expect(await repository.release(CURRENT)).toMatchObject({ code: 0, stderr: '' })
  expect(versionsIn(repository)).toEqual(Array.from({ length: 4 }, () => CURRENT))
  const changed = (await repository.git('show', '--format=', '--name-only')).trim()
  expect(changed).toBe(CHANGELOG)
  expect(await repository.git('tag')).toBe(`v${CURRENT}\n`)
  const repeated = { code: 1, stderr: `The tag v${CURRENT} already exists. Choose a higher version.\n` }
  expect(await repository.release(CURRENT)).toMatchObject(repeated)
})

type Repository = Awaited<ReturnType<typeof createRepository>>

it.each<[string, string[], (repository: Repository) => unknown, RegExp]>([
  ['no version', [], () => {}, /^Usage: npm run release -- VERSION/],
  ['two versions', ['1.0.1', '1.0.2'], () => {}, /^Usage: npm run release -- VERSION/],
  ['a text that is not a version', ['v2'], () => {}, /^v2 is not a version\./],
  ['a changed file', ['patch'], ({ write }) => write('Dockerfile', ''), /uncommitted changes.*\nM Dockerfile\n$/],
  ['an untracked file', ['patch'], ({ write }) => write('new.txt', ''), /uncommitted changes.*\n\?\? new\.txt\n$/],
  ['another branch', ['patch'], ({ git }) => git('checkout', '-b', 'topic'), /^The current branch is topic\./],
  ['no branch', ['patch'], ({ git }) => git('checkout', '--detach'), /^The current branch is none\./],
  ['an existing tag', ['patch'], ({ git }) => git('tag', `v${PATCH}`), /^The tag v\S+ already exists\./],
  ['a lower version', ['0.9.9'], () => {}, /^0\.9\.9 is lower than .*, the version in package\.json\./],
  ['a version without an entry', ['minor'], () => {}, /^src\/docs\/guides\/merchant\/changelog\.md has no changes/],
])('npm run release rejects %s and changes nothing', async (_, args, change, message) => {
  const repository = await createRepository(PATCH)
  await change(repository)
  const before = await repository.state()
  expect(await repository.release(...args)).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(message),
  })
  expect(await repository.state()).toEqual(before)
})

it('npm run release rejects an empty changelog entry', async () => {
  const { release } = await createRepository(PATCH, '')
  expect(await release('patch')).toMatchObject({ code: 1, stderr: expect.stringContaining('has no changes below') })
})

it('npm run release signs the tag with the key in the configuration, and changes nothing if git cannot sign', async () => {
  const repository = await createRepository(PATCH)
  const { folder, git, release, run, state } = repository
  await git('config', 'tag.gpgSign', 'true')
  await git('config', 'gpg.format', 'ssh')
  await git('config', 'user.signingKey', join(folder, '.git/key'))
  const before = await state()
  expect(await release('patch')).toMatchObject({ code: 1, stderr: expect.stringMatching(/^Nothing was released: /) })
  expect(await state()).toEqual(before)
  await run('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', join(folder, '.git/key'))
  expect(await release('patch')).toMatchObject({ code: 0, stderr: '' })
  expect(await git('cat-file', 'tag', `v${PATCH}`)).toContain('-----BEGIN SSH SIGNATURE-----')
})
