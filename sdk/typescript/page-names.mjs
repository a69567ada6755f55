// Finds the names that pages see: members of the exported types and of the types behind them.

import { readdirSync } from "node:fs";

import ts from "typescript";

/** Types between a source of tokens and its client: their members are internal. */
const OPAQUE = new Set(["Server", "TokenMaker", "Tokens"]);

/** Returns the public names of `dist/index.d.ts`. */
export function publicNames() {
  const files = readdirSync("dist").filter((name) => name.endsWith(".d.ts")).map((name) => `dist/${name}`);
  const program = ts.createProgram(files, { moduleResolution: ts.ModuleResolutionKind.NodeNext, module: ts.ModuleKind.NodeNext });
  const checker = program.getTypeChecker();
  const names = new Set();
  const seen = new Set();
  const isOwn = (symbol) => symbol?.declarations?.some(({ parent }) => parent.getSourceFile().fileName.includes("dist/"));
  const isHidden = ({ declarations = [] }) =>
    declarations.some((declaration) => ts.getCombinedModifierFlags(declaration) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected));

  const visit = (type) => {
    const symbol = type.aliasSymbol ?? type.symbol;
    if (seen.has(type) || OPAQUE.has(type.symbol?.name)) return;
    seen.add(type);
    if (type.isUnionOrIntersection()) type.types.forEach(visit);
    for (const signature of [...type.getCallSignatures(), ...type.getConstructSignatures()]) {
      visit(signature.getReturnType());
      for (const parameter of signature.getParameters()) visit(checker.getTypeOfSymbol(parameter));
    }
    for (const argument of checker.getTypeArguments(type) ?? []) visit(argument);
    if (symbol && !isOwn(symbol) && symbol.name !== "__type" && symbol.name !== "__object") return;
    for (const property of type.getProperties()) {
      if (!isOwn(property) || isHidden(property) || property.name.startsWith("__")) continue;
      names.add(property.name);
      visit(checker.getTypeOfSymbol(property));
    }
  };
  const index = checker.getSymbolAtLocation(program.getSourceFile("dist/index.d.ts"));
  for (const exported of checker.getExportsOfModule(index)) {
    const target = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
    visit(checker.getDeclaredTypeOfSymbol(target));
    if (target.valueDeclaration) visit(checker.getTypeOfSymbol(target));
  }
  return names;
}
