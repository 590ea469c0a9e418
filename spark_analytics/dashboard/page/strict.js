// Makes plotly.js live with a content security policy that forbids inline styles. Loaded before it.
//
// d3 sets style attributes now and then: the same style through the object model is allowed.
// The map library within plotly.js puts a style sheet into the page as soon as it is loaded; no
// chart here is a map.
{
  const setAttribute = Element.prototype.setAttribute;
  Element.prototype.setAttribute = function (name, value) {
    if (name === "style") this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };
  const appendChild = Node.prototype.appendChild;
  Node.prototype.appendChild = function (child) {
    const isSheet = child instanceof HTMLStyleElement && child.textContent !== "";
    return isSheet ? child : appendChild.call(this, child);
  };
}
