// A server of Express: a session, files by multer, events by better-sse.
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { mkdirSync } from "node:fs";

const require = createRequire(process.argv[2] + "/");
const express = require("express");
const multer = require("multer");
const { createChannel, createSession } = require("better-sse");

const app = express();
const channel = createChannel();
const visitors = new Map();
const folder = "/srv/live";
mkdirSync(folder, { recursive: true });
const files = multer({ storage: multer.diskStorage({ destination: folder, filename: (_, file, done) => done(null, file.originalname) }) });

// nginx is trusted to say who asks, and how.
app.set("trust proxy", "loopback");
app.use(express.urlencoded({ extended: false }));

// Behind a front end that asks for passwords itself, that says who it is.
const nameOf = (request) => request.get("x-user") ?? visitors.get((request.get("cookie") ?? "").match(/visitor=([\w-]+)/)?.[1]);

app.get("/", (request, response) => {
    const name = nameOf(request);
    if (name === undefined) return response.redirect("/login");
    response.type("html").send(`<h1>Welcome, ${name}</h1>`.repeat(200));
});
app.get("/login", (_, response) => response.send('<form method="post"><input name="name"><input name="password"></form>'));
app.post("/login", (request, response) => {
    if (request.body.password !== "secret word") return response.status(403).send("That is not it.");
    const visitor = randomUUID();
    visitors.set(visitor, request.body.name);
    response.cookie("visitor", visitor, { httpOnly: true, secure: request.secure });
    response.redirect(303, "/");
});
app.use((request, response, next) => (nameOf(request) === undefined ? response.status(401).send("Who is it?") : next()));
app.get("/seen", (request, response) => response.json({ protocol: request.protocol, host: request.host, ip: request.ip }));
app.post("/files", files.single("file"), (request, response) => {
    channel.broadcast({ name: request.file.originalname, size: request.file.size }, "uploaded");
    response.status(201).json({ size: request.file.size });
});
app.use("/files", express.static(folder));
app.get("/events", async (request, response) => {
    const session = await createSession(request, response, { keepAlive: 1000 });
    channel.register(session);
    session.push({ name: nameOf(request) }, "welcome");
});
app.listen(3001, "127.0.0.1", () => console.log("Listening on 3001"));
