const answer = await fetch('openapi.json')
const openapi = await answer.json()
// Requests go where this page came from, which the policy of the page demands, by whatever name it was opened.
const here = new URL('.', location.href).href.replace(/\/$/, '')

// What may be left out starts empty; Swagger UI would fill it with letters that fit the pattern.
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
  // It would send the document to a service of somebody else's.
  validatorUrl: null,
})
