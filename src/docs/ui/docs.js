const answer = await fetch('openapi.json')
const openapi = await answer.json()
// Requests go where this page came from, which the policy of the page demands, by whatever name it was opened.
const here = new URL('.', location.href).href.replace(/\/$/, '')

SwaggerUIBundle({
  dom_id: '#docs',
  spec: { ...openapi, servers: [{ url: here }] },
  tryItOutEnabled: true,
  defaultModelsExpandDepth: -1,
  // It would send the document to a service of somebody else's.
  validatorUrl: null,
})
