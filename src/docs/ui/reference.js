// The library shows and searches an operation's summary: its name stands beside it here, and not in the document, from which
// other programs take names of their own.
// OpenAPI Explorer fills in the defaults of a form's fields. They have none: their examples stand in, so that the first press of
// Execute is answered 200. Nothing is filled into order_id, since the second press would be a repeat; its name takes the place of
// an example, as an input without one has no name for a screen reader.
document.querySelector('openapi-explorer').addEventListener('spec-loaded', ({ detail }) => {
  for (const path of detail.tags.flatMap(({ paths }) => paths)) {
    path.summary = path.shortSummary = `${path.summary} · ${path.operationId}`
    const { properties = {}, required } = path.requestBody?.content['application/x-www-form-urlencoded']?.schema ?? {}
    for (const [name, property] of Object.entries(properties)) {
      if (required.includes(name)) property.default = property.example
      property.example ??= name
    }
  }
})
