// OpenAPI Explorer fills in the defaults of a form's fields. They have none: their examples stand in, so that the first press of
// Execute is answered 200. An order_id is left out, since the second press would be a repeat.
document.querySelector('openapi-explorer').addEventListener('spec-loaded', ({ detail }) => {
  for (const { requestBody } of detail.tags.flatMap(({ paths }) => paths)) {
    const { properties = {}, required = [] } = requestBody?.content['application/x-www-form-urlencoded']?.schema ?? {}
    for (const name of required) properties[name].default = properties[name].example
  }
})
