// npm run release -- VERSION
//
// VERSION is the next version, or patch, minor or major. The command writes the version and the release date, commits,
// and creates an annotated tag with the changelog entry. It neither pushes nor builds, and it has no signing key: git
// signs the tag if the configuration tag.gpgSign is true.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

const CHANGELOG = 'src/docs/guides/merchant/changelog.md'
const VERSION = /^(\d+)\.(\d+)\.(\d+)$/
const PARTS = ['major', 'minor', 'patch']

/** A release that is not possible; the message states the reason and the next step. */
class ReleaseError extends Error {}

try {
  release(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof ReleaseError)) throw error
  console.error(error.message)
  process.exitCode = 1
}

function release([requested, ...others]: string[]): void {
  if (requested === undefined || others.length > 0) {
    throw new ReleaseError(
      'Usage: npm run release -- VERSION, where VERSION is such as 1.0.1, or patch, minor or major.',
    )
  }
  const current = JSON.parse(readFileSync('package.json', 'utf8')).version as string
  const version = nextVersion(current, requested)
  checkRepository()
  checkVersion(version, current)
  const changelog = readFileSync(CHANGELOG, 'utf8')
  const entry = findEntry(changelog, version)
  const before = git('rev-parse', 'HEAD')
  try {
    writeVersion(version)
    writeFileSync(CHANGELOG, changelog.replace(headingOf(version), `## ${version} (${today()})`))
    git('commit', '--quiet', '--all', '--message', `release: ${version}`)
    createTag(`v${version}`, `UPI payments ${version}\n\n${entry}`)
  } catch (error) {
    // The checkout was clean, so this discards only what this command has written.
    git('reset', '--quiet', '--hard', before)
    const { stderr, message } = error as { stderr?: string; message: string }
    throw new ReleaseError(`Nothing was released: ${stderr?.trim() || message}`)
  }
  printNextSteps(version)
}

function nextVersion(current: string, requested: string): string {
  if (VERSION.test(requested)) return requested
  const part = PARTS.indexOf(requested)
  if (part < 0) {
    throw new ReleaseError(`${requested} is not a version. Use three numbers such as 1.0.1, or patch, minor or major.`)
  }
  return numbersOf(current)
    .map((number, index) => (index < part ? number : index === part ? number + 1 : 0))
    .join('.')
}

function checkRepository(): void {
  const branch = git('branch', '--show-current')
  if (branch !== 'main') {
    throw new ReleaseError(`The current branch is ${branch || 'none'}. Run git checkout main, and repeat the command.`)
  }
  const changes = git('status', '--porcelain')
  if (changes !== '') {
    throw new ReleaseError(`The checkout has uncommitted changes. Commit or remove these files first:\n${changes}`)
  }
}

/** The version in package.json can itself be released as long as it has no tag: this is the first release. */
function checkVersion(version: string, current: string): void {
  if (git('tag', '--list', `v${version}`) !== '') {
    throw new ReleaseError(`The tag v${version} already exists. Choose a higher version.`)
  }
  if (version !== current && !isHigher(version, current)) {
    throw new ReleaseError(`${version} is lower than ${current}, the version in package.json. Choose a higher version.`)
  }
}

function isHigher(version: string, current: string): boolean {
  const [ours, theirs] = [numbersOf(version), numbersOf(current)]
  const first = ours.findIndex((number, index) => number !== theirs[index])
  return first >= 0 && (ours[first] ?? 0) > (theirs[first] ?? 0)
}

function numbersOf(version: string): number[] {
  return version.split('.').map(Number)
}

function headingOf(version: string): string {
  return `## ${version} (unreleased)`
}

/** The text below the version's heading in the changelog, without the heading. */
function findEntry(changelog: string, version: string): string {
  const [, after] = changelog.split(`\n${headingOf(version)}\n`)
  const entry = after?.split(/^## /m)[0]?.trim()
  if (!entry) {
    throw new ReleaseError(
      `${CHANGELOG} has no changes below the heading "${headingOf(version)}". Add the heading and its changes, and commit.`,
    )
  }
  return entry
}

function writeVersion(version: string): void {
  // npm writes package.json and package-lock.json.
  run('npm', ['version', version, '--no-git-tag-version', '--allow-same-version', '--ignore-scripts'])
  const dockerfile = readFileSync('Dockerfile', 'utf8')
  const label = /(?<=org\.opencontainers\.image\.version=")[^"]*/
  if (!label.test(dockerfile)) throw new ReleaseError('Dockerfile has no label for the version. Add the label.')
  writeFileSync('Dockerfile', dockerfile.replace(label, version))
}

function createTag(tag: string, message: string): void {
  // The default cleanup would remove headings of the entry as comments.
  git('tag', '--annotate', '--cleanup=whitespace', '--message', message, tag)
  const isToBeSigned = git('config', '--type=bool', '--default=false', '--get', 'tag.gpgSign') === 'true'
  // git 2.39 creates the tag and exits with 0 if it cannot sign with an SSH key.
  if (isToBeSigned && git('tag', '--list', '--format=%(contents:signature)', tag) === '') {
    git('tag', '--delete', tag)
    throw new ReleaseError('git cannot sign the tag with the key in its configuration. Check user.signingKey.')
  }
}

/** The date in India, where the service runs. */
function today(): string {
  return new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'Asia/Kolkata' }).format(new Date())
}

function printNextSteps(version: string): void {
  console.log(`Created the commit and the tag v${version}. Nothing has been pushed or built. Next:

  git push origin main v${version}
  docker build --build-arg COMMIT=${git('rev-parse', '--short', 'HEAD')} \\
    --build-arg SOURCE=REPOSITORY --tag upi-payments:${version} .

Replace REPOSITORY with the URL of the repository. To sign the tag and the image with your own key, see the chapter
Upgrade of the operator manual.`)
}

function git(...args: string[]): string {
  return run('git', args).trim()
}

function run(command: string, args: string[]): string {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}
