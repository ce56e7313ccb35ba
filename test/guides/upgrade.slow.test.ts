import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { blockWith } from './guides.ts'
import { has, run } from './interpreters.ts'

const LIST_TAGS = blockWith('operator', 'sh', "git tag --list 'v*'")
const COMPARE = blockWith('operator', 'sh', 'git log --oneline')
const CREATE_KEY = blockWith('operator', 'sh', 'ssh-keygen -t ed25519')
const SIGN = blockWith('operator', 'sh', 'git tag --sign')
const TRUST = blockWith('operator', 'sh', 'allowedSignersFile')
const VERIFY = blockWith('operator', 'sh', 'git verify-tag')

describe.runIf(has('git', { mustHave: true }) && has('ssh-keygen', { mustHave: true }))(
  'the chapter Upgrade of the operator manual',
  () => {
    /** A repository with two versions, its clone on a machine of the service, and a shell in each. */
    async function createRepositories() {
      const folder = mkdtempSync(join(tmpdir(), 'upi-payments-upgrade-'))
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
      const environment = { HOME: folder, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' }
      const shell = (name: string) => async (commands: string) => {
        const inFolder = commands.replaceAll('/etc/upi-payments', folder)
        return await run(['sh', '-ec', inFolder], join(folder, name), environment)
      }
      for (const name of ['origin', '.ssh']) mkdirSync(join(folder, name))
      const origin = shell('origin')
      const versions = `git init --quiet --initial-branch main
        git config user.name 'Asha Rao'
        git config user.email asha@pay.example
        mkdir migrations
        for version in 1.0.0 1.1.0; do
          echo $version > migrations/$version.sql
          git add .
          git commit --quiet --message "release: $version"
          git tag --annotate --message "Changes of $version" v$version
        done
        git clone --quiet . ../machine
        git clone --quiet . ../approver`
      expect(await origin(versions)).toMatchObject({ code: 0 })
      const approver = shell('approver')
      await approver("git config user.name 'Asha Rao'; git config user.email asha@pay.example")
      return { approver, machine: shell('machine') }
    }

    it('the commands list the versions and the changes between two versions', async () => {
      const { machine } = await createRepositories()
      const listed = await machine(LIST_TAGS.replace(/^ops .*\n/m, ''))
      expect(listed).toMatchObject({ code: 0, stdout: 'v1.1.0\nv1.0.0\n' })
      const { code, stdout } = await machine(COMPARE)
      expect(code).toBe(0)
      expect(stdout).toMatch(/^Changes of 1\.1\.0\n+[0-9a-f]+ release: 1\.1\.0\n/)
      expect(stdout).toContain('+++ b/migrations/1.1.0.sql\n')
      expect(stdout).not.toContain('migrations/1.0.0.sql')
    })

    it('the commands sign an approved version, and verify it with the copied public key', async () => {
      const { approver, machine } = await createRepositories()
      // Without a terminal, ssh-keygen cannot ask for a passphrase.
      expect(await approver(CREATE_KEY.replace(/^ssh-keygen/, "ssh-keygen -q -N ''"))).toMatchObject({ code: 0 })
      expect(await approver(SIGN)).toMatchObject({ code: 0 })
      expect(await machine('cp ~/.ssh/upi-releases.pub /etc/upi-payments/')).toMatchObject({ code: 0 })
      expect(await machine(TRUST)).toMatchObject({ code: 0 })
      const verified = await machine(VERIFY)
      expect(verified).toMatchObject({ code: 0, stderr: expect.stringContaining('Good "git" signature for releases') })
      const { stdout } = await machine('git rev-parse HEAD v1.1.0^{}')
      const [head, version] = stdout.trim().split('\n')
      expect(head).toBe(version)
    })

    const otherKey = "ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/other; git config user.signingKey ~/.ssh/other.pub"

    it.each([
      ['signed with another key', `${otherKey}\n${SIGN}`],
      ['not signed', SIGN.replace('--sign', '--annotate')],
    ])('the command rejects a tag that is %s, and leaves the running version in place', async (_, sign) => {
      const { approver, machine } = await createRepositories()
      await approver(CREATE_KEY.replace(/^ssh-keygen/, "ssh-keygen -q -N ''"))
      expect(await approver(sign)).toMatchObject({ code: 0 })
      await machine('git checkout --quiet v1.0.0')
      await machine(`cp ~/.ssh/upi-releases.pub /etc/upi-payments/\n${TRUST}`)
      const before = await machine('git rev-parse HEAD')
      expect((await machine(VERIFY)).code).not.toBe(0)
      expect(await machine('git rev-parse HEAD')).toEqual(before)
    })
  },
)
