// Adds a copy button to each block of code, except over plain http, where browsers offer no clipboard.
if (navigator.clipboard) {
  for (const block of document.querySelectorAll('.code')) {
    const code = block.querySelector('code')
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'copy'
    button.textContent = 'Copy'
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(textOf(code))
      button.textContent = 'Copied'
      setTimeout(() => {
        button.textContent = 'Copy'
      }, 2_000)
    })
    block.prepend(button)
  }
}

/** The text to copy: the whole block, or only the commands of a terminal session. */
function textOf(code) {
  if (!code.classList.contains('language-console')) return code.textContent
  const commands = code.textContent.split('\n').filter((line) => line.startsWith('$ '))
  return commands.map((line) => `${line.slice(2)}\n`).join('')
}
