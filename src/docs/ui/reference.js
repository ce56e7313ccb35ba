const answer = await fetch('../openapi.json')
const openapi = await answer.json()
// Requests go where this page came from, which the policy of the page demands, by whatever name it was opened.
const here = new URL('..', location.href).href.replace(/\/$/, '')

// Optional fields start empty; Swagger UI would fill them with letters that fit the pattern.
for (const { post } of Object.values(openapi.paths)) {
  const form = post?.requestBody.content['application/x-www-form-urlencoded']?.schema
  for (const [name, property] of Object.entries(form?.properties ?? {})) {
    if (!form.required.includes(name)) property.example = ''
  }
}

const dark = matchMedia('(prefers-color-scheme: dark)')
const dress = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', dress)
dress()

SwaggerUIBundle({
  dom_id: '#docs',
  spec: { ...openapi, servers: [{ url: here }] },
  tryItOutEnabled: true,
  persistAuthorization: false,
  defaultModelsExpandDepth: -1,
  // The validator would send the document to another company's service.
  validatorUrl: null,
  // The contrast of its colours is too low, in light and in dark.
  syntaxHighlight: { activated: false },
})

// The guides link to an operation by its id, #operations-Merchant-createPaymentIntent: it is opened as soon as it is drawn.
// Swagger UI's own deepLinking would put a link inside a button.
let wanted = location.hash.slice(1)
addEventListener('hashchange', () => {
  wanted = location.hash.slice(1)
  showWanted()
})

function showWanted() {
  const part = wanted && document.getElementById(wanted)
  if (!part) return
  wanted = ''
  if (part.classList.contains('opblock') && !part.classList.contains('is-open')) {
    part.querySelector('.opblock-summary-control').click()
  }
  part.scrollIntoView()
}

// Adds what Swagger UI leaves out for screen readers and keyboards, each time that it draws.
new MutationObserver(amend).observe(document.getElementById('docs'), { childList: true, subtree: true })

function amend() {
  showWanted()
  const about = document.querySelector('#docs .information-container')
  about?.setAttribute('role', 'region')
  about?.setAttribute('aria-label', 'About')
  for (const select of document.querySelectorAll('#docs select:not([aria-label])')) {
    if (select.labels.length === 0) select.setAttribute('aria-label', 'Example')
  }
  for (const body of document.querySelectorAll('#docs textarea:not([aria-label])'))
    body.setAttribute('aria-label', 'Request body')
  for (const button of document.querySelectorAll('#docs button:not([aria-label])')) {
    if (button.textContent.trim() === '') button.setAttribute('aria-label', button.title || 'Copy')
  }
  for (const heading of document.querySelectorAll('#docs :is(h3, h4, h5):not([aria-level])')) {
    // One level higher, so that no level is left out below the title of the page.
    heading.setAttribute('aria-level', Number(heading.tagName[1]) - 1)
  }
  for (const table of document.querySelectorAll('#docs table[role="region"]:not([aria-label])')) {
    table.setAttribute('aria-label', `Responses of ${table.id}`)
  }
  for (const pre of document.querySelectorAll('#docs pre:not([tabindex])')) pre.tabIndex = 0
}
