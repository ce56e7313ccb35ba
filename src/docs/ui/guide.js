// A button that copies, on every block of code. Where the browser gives a page no clipboard (plain http), there is none.
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

/** Of a terminal's text only the commands, without what they printed. */
function textOf(code) {
  if (!code.classList.contains('language-console')) return code.textContent
  const commands = code.textContent.split('\n').filter((line) => line.startsWith('$ '))
  return commands.map((line) => `${line.slice(2)}\n`).join('')
}
