// OpenAPI Explorer fills in the defaults of a form's fields. They have none: their examples stand in, so that the first press of
// Execute is answered 200. Nothing is filled into order_id, since the second press would be a repeat; its name takes the place of
// an example, as an input without one has no name for a screen reader.
document.querySelector('openapi-explorer').addEventListener('spec-loaded', ({ detail }) => {
  for (const { requestBody } of detail.tags.flatMap(({ paths }) => paths)) {
    const { properties = {}, required } = requestBody?.content['application/x-www-form-urlencoded']?.schema ?? {}
    for (const [name, property] of Object.entries(properties)) {
      if (required.includes(name)) property.default = property.example
      property.example ??= name
    }
  }
})
