/** A content type without its parameters, in lower case: `Application/JSON; charset=utf-8` is `application/json`. */
export function mediaType(contentType: string): string {
  const end = contentType.indexOf(';')
  return (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase()
}
