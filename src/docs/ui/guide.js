// Adds a copy button to every block of code, except on plain http, where browsers give a page no clipboard.
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

/** Returns the text to copy: the whole block, but of a terminal session only the commands, without their output. */
function textOf(code) {
  if (!code.classList.contains('language-console')) return code.textContent
  const commands = code.textContent.split('\n').filter((line) => line.startsWith('$ '))
  return commands.map((line) => `${line.slice(2)}\n`).join('')
}
